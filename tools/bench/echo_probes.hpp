// What else two processes may talk over, measured beside a pick: an eventfd each way, a Unix stream
// and, where it was there at build time, a gRPC stream. The other end is a forked child that
// echoes; both ends block while they wait. Make them before any thread is started.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "daemon/base/fd.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

// One way to get `bytes` to another process and `answer_bytes` back.
class EchoProbe {
 public:
  virtual ~EchoProbe() = default;
  // Adds `count` round-trip times in nanoseconds. Throws std::runtime_error.
  void run(std::size_t bytes, std::size_t answer_bytes, std::size_t count, tools::Samples& samples);

  // The same by hand: `turns` times once() between begin() and end().
  virtual void begin(std::size_t bytes, std::size_t answer_bytes, std::size_t turns) = 0;
  virtual void once() = 0;
  virtual void end() {}
};

// An eventfd carries no bytes: it is the two wakes alone.
std::unique_ptr<EchoProbe> make_eventfd_probe();
std::unique_ptr<EchoProbe> make_unix_probe();
// A bidirectional stream over loopback TCP; nullptr when this program was built without gRPC.
std::unique_ptr<EchoProbe> make_grpc_probe();

// The forked child of a probe, killed with this object or with this process.
class EchoChild {
 public:
  // Forks; in the child runs `body` and exits. Throws std::runtime_error.
  template <typename Body>
  explicit EchoChild(const Body& body) : pid_(fork_child()) {
    if (pid_ == 0) {
      body();
      leave();
    }
  }
  EchoChild(const EchoChild&) = delete;
  EchoChild& operator=(const EchoChild&) = delete;
  ~EchoChild();

 private:
  static pid_t fork_child();
  [[noreturn]] static void leave();
  pid_t pid_;
};

}  // namespace pickd::bench

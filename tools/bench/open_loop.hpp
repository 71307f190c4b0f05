// The open loop: something is due at intended times whether the one before it has ended or not, and
// its latency counts from there, so a stall is seen by everything that it delays. Under it picks
// with several ways of waiting, and other load on the machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/client.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/bench/echo_probes.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

// Children that do nothing but take time from a core.
class Hogs {
 public:
  explicit Hogs(std::uint32_t count);
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;
  ~Hogs();

 private:
  std::vector<pid_t> children_;
};

// What is done at the intended times, by a number of clients with a thread each.
class LoopSubject {
 public:
  virtual ~LoopSubject() = default;
  virtual void before_slice() {}
  virtual void after_slice() {}  // leaves the machine to the others
  virtual void once(std::uint32_t client, std::uint64_t turn) = 0;
};

struct PickSubjectOptions {
  std::uint32_t clients = 1;
  std::uint32_t endpoints = 16;
  std::uint32_t prompt_tokens = 1000;
};
// Picks of a daemon of its own, reported done. `wait`: block, default or spin, on both sides.
std::unique_ptr<LoopSubject> make_pick_subject(const std::string& wait,
                                               const PickSubjectOptions& options);
// Wakes another process over an eventfd and is woken: a probe of the machine. One client.
std::unique_ptr<LoopSubject> make_wake_subject();

struct LoopPace {
  double rate = 1000;  // a second, all clients together
  double slice_s = 1;
  std::uint32_t clients = 1;
};
// One slice: latencies in nanoseconds from the intended time. What is still due when as much time
// again has gone counts with what it has waited by then. Throws std::runtime_error.
tools::Samples run_slice(LoopSubject& subject, const LoopPace& pace);

}  // namespace pickd::bench

// Reactor: readiness of descriptors and timers for the control thread, behind one interface.
//
// One thread runs it and calls everything but wake(). Handlers may watch, unwatch and set timers,
// also for themselves; a handler that was removed is not called any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/base/result.hpp"

namespace pickd::net {

enum Readiness : std::uint32_t {
  kReadable = 1U << 0,
  kWritable = 1U << 1,
  kHungUp = 1U << 2,  // always reported
};

class Reactor {
 public:
  using Handler = std::function<void(std::uint32_t readiness)>;
  using TimerHandler = std::function<void()>;
  using TimerId = std::uint64_t;

  virtual ~Reactor() = default;

  // Level-triggered. The descriptor stays the caller's and must be unwatched before it is closed;
  // when unwatch() has returned, the reactor holds nothing that keeps the file behind it open.
  // -EEXIST: watched already; -EBADF: no descriptor; -EPERM: a file, which is always ready.
  virtual base::Result<void> watch(int fd, std::uint32_t interest, Handler handler) = 0;
  virtual base::Result<void> change(int fd, std::uint32_t interest) = 0;
  virtual void unwatch(int fd) = 0;

  // Calls `handler` once, not before `delay_ns` have passed.
  virtual TimerId after(std::uint64_t delay_ns, TimerHandler handler) = 0;
  virtual void cancel(TimerId timer) = 0;

  // Handles events until stop(). Any thread may stop() or wake() it.
  virtual void run() = 0;
  virtual void stop() = 0;
  // Makes the wake handler run soon; any number of calls before it runs make one.
  virtual void wake() = 0;
  virtual void set_wake_handler(TimerHandler handler) = 0;

  virtual std::string name() const = 0;
};

// make_reactor.hpp chooses between these.
base::Result<std::unique_ptr<Reactor>> make_epoll_reactor();

// Fails, with the reason, where the kernel or a sandbox does not let io_uring be set up or used.
// `entries`: length of the submission queue, a power of two; a full one is submitted and goes on.
inline constexpr unsigned kIoUringEntries = 256;
base::Result<std::unique_ptr<Reactor>> make_io_uring_reactor(unsigned entries = kIoUringEntries);

}  // namespace pickd::net

#include "daemon/workers/wake_pipe.hpp"

#include <unistd.h>

#include "daemon/base/clock.hpp"

namespace pickd::workers {

namespace {

// A wake takes a few microseconds; with a thousand waiters at the other end hundreds.
constexpr std::uint64_t kSlowNs = 200'000;
constexpr std::uint32_t kSlowInARowMax = 3;

}  // namespace

void WakePipe::write() const {
  // A full pipe is no fault: the client has not read what woke it before. A closed one is a dead
  // client.
  const char byte = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(fd_.get(), &byte, sizeof byte);
}

// Time of this thread: a worker that lost its core to the client that it woke has not worked. That
// clock is a system call, so it is asked only where the other one gives a reason to.
void WakePipe::write_measured(WakeCosts& costs) const {
  const bool watched = costs.watched.load(std::memory_order_relaxed);
  const std::uint64_t from_ns = base::monotonic_ns();
  const std::uint64_t worked_ns = watched ? base::clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
  write();
  if (!watched) {
    if (base::monotonic_ns() - from_ns >= kSlowNs)
      costs.watched.store(true, std::memory_order_relaxed);
    return;
  }
  if (base::clock_ns(CLOCK_THREAD_CPUTIME_ID) - worked_ns < kSlowNs) {
    costs.watched.store(false, std::memory_order_relaxed);
    costs.slow_in_a_row.store(0, std::memory_order_relaxed);
    return;
  }
  if (costs.slow_in_a_row.fetch_add(1, std::memory_order_relaxed) + 1 >= kSlowInARowMax)
    costs.apart.store(true, std::memory_order_relaxed);
}

void WakePipe::ring(WakeCosts* costs, Chores* apart) {
  if (costs == nullptr || apart == nullptr) return write();
  if (!costs->apart.load(std::memory_order_relaxed)) return write_measured(*costs);
  // Acquire-release; partner: the store below. What was published before this is there when the
  // byte is written, by this wake or by the one that waits.
  if (posted_.exchange(true, std::memory_order_acq_rel)) return;
  apart->post([self = shared_from_this()] {
    self->posted_.exchange(false, std::memory_order_acq_rel);
    self->write();
  });
}

}  // namespace pickd::workers

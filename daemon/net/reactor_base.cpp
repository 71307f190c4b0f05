#include "daemon/net/reactor_base.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/clock.hpp"

namespace pickd::net {

base::Result<base::Fd> ReactorBase::make_bell() {
  base::Fd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell.valid()) return base::errno_error("eventfd");
  return bell;
}

base::Result<void> ReactorBase::watch_bell() {
  return watch(bell_.get(), kReadable, [this](std::uint32_t) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &count, sizeof count);
    if (wake_handler_) wake_handler_();
  });
}

Reactor::TimerId ReactorBase::after(std::uint64_t delay_ns, TimerHandler handler) {
  const TimerId id = ++next_timer_;
  const std::uint64_t due_ns = base::monotonic_ns() + delay_ns;
  timers_.emplace(std::pair{due_ns, id}, std::move(handler));
  due_of_.emplace(id, due_ns);
  return id;
}

void ReactorBase::cancel(TimerId timer) {
  const auto at = due_of_.find(timer);
  if (at == due_of_.end()) return;
  timers_.erase({at->second, timer});
  due_of_.erase(at);
}

void ReactorBase::run() {
  // Acquire; partner: the release in stop().
  while (!stopped_.load(std::memory_order_acquire)) {
    handle_events();
    run_timers();
  }
}

void ReactorBase::stop() {
  stopped_.store(true, std::memory_order_release);  // partner: the acquire in run()
  wake();
}

void ReactorBase::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(bell_.get(), &one, sizeof one);
}

std::optional<std::uint64_t> ReactorBase::wait_ns() const {
  if (timers_.empty()) return std::nullopt;
  const std::uint64_t due_ns = timers_.begin()->first.first;
  const std::uint64_t now_ns = base::monotonic_ns();
  return due_ns <= now_ns ? 0 : due_ns - now_ns;
}

void ReactorBase::run_timers() {
  const std::uint64_t now_ns = base::monotonic_ns();
  while (!timers_.empty() && timers_.begin()->first.first <= now_ns) {
    const auto first = timers_.begin();
    const TimerHandler handler = std::move(first->second);
    due_of_.erase(first->first.second);
    timers_.erase(first);
    handler();
  }
}

}  // namespace pickd::net

// The reactor over epoll: one epoll descriptor, one eventfd for wakes, timers in an ordered map.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <map>
#include <unordered_map>

#include "daemon/base/clock.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {

namespace {

constexpr int kEventsAtOnce = 64;

std::uint32_t to_epoll(std::uint32_t interest) {
  std::uint32_t events = EPOLLRDHUP;
  if ((interest & kReadable) != 0) events |= EPOLLIN;
  if ((interest & kWritable) != 0) events |= EPOLLOUT;
  return events;
}

std::uint32_t from_epoll(std::uint32_t events) {
  std::uint32_t readiness = 0;
  if ((events & EPOLLIN) != 0) readiness |= kReadable;
  if ((events & EPOLLOUT) != 0) readiness |= kWritable;
  if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) readiness |= kHungUp;
  return readiness;
}

class EpollReactor final : public Reactor {
 public:
  EpollReactor(base::Fd epoll, base::Fd bell) : epoll_(std::move(epoll)), bell_(std::move(bell)) {}

  base::Result<void> watch(int fd, std::uint32_t interest, Handler handler) override {
    const std::uint32_t serial = ++next_serial_;
    epoll_event event{to_epoll(interest), {}};
    event.data.u64 = (static_cast<std::uint64_t>(serial) << 32) | static_cast<std::uint32_t>(fd);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return base::errno_error("epoll add");
    watched_[fd] = {serial, std::make_shared<Handler>(std::move(handler))};
    return {};
  }

  base::Result<void> change(int fd, std::uint32_t interest) override {
    const auto at = watched_.find(fd);
    if (at == watched_.end()) return base::Error{-ENOENT, "epoll change: not watched"};
    epoll_event event{to_epoll(interest), {}};
    event.data.u64 =
        (static_cast<std::uint64_t>(at->second.serial) << 32) | static_cast<std::uint32_t>(fd);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
      return base::errno_error("epoll change");
    return {};
  }

  void unwatch(int fd) override {
    if (watched_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }

  TimerId after(std::uint64_t delay_ns, TimerHandler handler) override {
    const TimerId id = ++next_timer_;
    const std::uint64_t due_ns = base::monotonic_ns() + delay_ns;
    timers_.emplace(std::pair{due_ns, id}, std::move(handler));
    due_of_.emplace(id, due_ns);
    return id;
  }

  void cancel(TimerId timer) override {
    const auto at = due_of_.find(timer);
    if (at == due_of_.end()) return;
    timers_.erase({at->second, timer});
    due_of_.erase(at);
  }

  void run() override {
    // Acquire; partner: the release in stop().
    while (!stopped_.load(std::memory_order_acquire)) {
      epoll_event events[kEventsAtOnce];
      const int count = ::epoll_wait(epoll_.get(), events, kEventsAtOnce, timeout_ms());
      for (int at = 0; at < count; ++at) handle(events[at]);
      run_timers();
    }
  }

  void stop() override {
    stopped_.store(true, std::memory_order_release);
    wake();
  }

  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(bell_.get(), &one, sizeof one);
  }

  void set_wake_handler(TimerHandler handler) override { wake_handler_ = std::move(handler); }
  std::string name() const override { return "epoll"; }

  base::Result<void> watch_bell() {
    return watch(bell_.get(), kReadable, [this](std::uint32_t) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &count, sizeof count);
      if (wake_handler_) wake_handler_();
    });
  }

 private:
  struct Watched {
    std::uint32_t serial;
    std::shared_ptr<Handler> handler;
  };

  int timeout_ms() const {
    if (timers_.empty()) return -1;
    const std::uint64_t due_ns = timers_.begin()->first.first;
    const std::uint64_t now_ns = base::monotonic_ns();
    if (due_ns <= now_ns) return 0;
    const std::uint64_t wait_ms = (due_ns - now_ns + 999'999) / 1'000'000;  // up: never too early
    return wait_ms > INT_MAX ? INT_MAX : static_cast<int>(wait_ms);
  }

  void handle(const epoll_event& event) {
    const int fd = static_cast<int>(event.data.u64 & 0xFFFFFFFF);
    const auto at = watched_.find(fd);
    // Unwatched by a handler before, or the number already names another descriptor.
    if (at == watched_.end() || at->second.serial != event.data.u64 >> 32) return;
    const std::shared_ptr<Handler> handler = at->second.handler;  // lives through its own unwatch
    (*handler)(from_epoll(event.events));
  }

  void run_timers() {
    const std::uint64_t now_ns = base::monotonic_ns();
    while (!timers_.empty() && timers_.begin()->first.first <= now_ns) {
      const auto first = timers_.begin();
      const TimerHandler handler = std::move(first->second);
      due_of_.erase(first->first.second);
      timers_.erase(first);
      handler();
    }
  }

  base::Fd epoll_;
  base::Fd bell_;
  std::unordered_map<int, Watched> watched_;
  std::map<std::pair<std::uint64_t, TimerId>, TimerHandler> timers_;
  std::unordered_map<TimerId, std::uint64_t> due_of_;
  TimerHandler wake_handler_;
  std::uint32_t next_serial_ = 0;
  TimerId next_timer_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace

base::Result<std::unique_ptr<Reactor>> make_epoll_reactor() {
  base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::errno_error("epoll_create1");
  base::Fd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell.valid()) return base::errno_error("eventfd");
  auto reactor = std::make_unique<EpollReactor>(std::move(epoll), std::move(bell));
  if (auto watched = reactor->watch_bell(); !watched) return watched.error();
  return std::unique_ptr<Reactor>(std::move(reactor));
}

}  // namespace pickd::net

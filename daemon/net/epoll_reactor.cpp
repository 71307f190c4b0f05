// The reactor over epoll: works on every kernel, and where io_uring is refused.
#include <sys/epoll.h>

#include <climits>
#include <unordered_map>

#include "daemon/base/fd.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/net/reactor_base.hpp"

namespace pickd::net {

namespace {

constexpr int kEventsAtOnce = 64;
constexpr std::uint64_t kMillisecondNs = 1'000'000;

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

class EpollReactor final : public ReactorBase {
 public:
  static base::Result<std::unique_ptr<Reactor>> make() {
    base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) return base::errno_error("epoll_create1");
    auto bell = make_bell();
    if (!bell) return bell.error();
    std::unique_ptr<EpollReactor> reactor(new EpollReactor(std::move(epoll), std::move(*bell)));
    if (auto watched = reactor->watch_bell(); !watched) return watched.error();
    return std::unique_ptr<Reactor>(std::move(reactor));
  }

  base::Result<void> watch(int fd, std::uint32_t interest, Handler handler) override {
    const std::uint32_t serial = ++next_serial_;
    epoll_event event{to_epoll(interest), {}};
    event.data.u64 = tag(serial, fd);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return base::errno_error("epoll add");
    watched_[fd] = {serial, std::make_shared<Handler>(std::move(handler))};
    return {};
  }

  base::Result<void> change(int fd, std::uint32_t interest) override {
    const auto at = watched_.find(fd);
    if (at == watched_.end()) return base::Error{-ENOENT, "epoll change: not watched"};
    epoll_event event{to_epoll(interest), {}};
    event.data.u64 = tag(at->second.serial, fd);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
      return base::errno_error("epoll change");
    return {};
  }

  void unwatch(int fd) override {
    if (watched_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }

  std::string name() const override { return "epoll"; }

 private:
  struct Watched {
    std::uint32_t serial;
    std::shared_ptr<Handler> handler;
  };

  EpollReactor(base::Fd epoll, base::Fd bell)
      : ReactorBase(std::move(bell)), epoll_(std::move(epoll)) {}

  static std::uint64_t tag(std::uint32_t serial, int fd) {
    return (static_cast<std::uint64_t>(serial) << 32) | static_cast<std::uint32_t>(fd);
  }

  int timeout_ms() const {
    const auto wait = wait_ns();
    if (!wait) return -1;
    const std::uint64_t wait_ms = (*wait + kMillisecondNs - 1) / kMillisecondNs;  // never too early
    return wait_ms > INT_MAX ? INT_MAX : static_cast<int>(wait_ms);
  }

  void handle_events() override {
    epoll_event events[kEventsAtOnce];
    const int count = ::epoll_wait(epoll_.get(), events, kEventsAtOnce, timeout_ms());
    for (int at = 0; at < count; ++at) handle(events[at]);
  }

  void handle(const epoll_event& event) {
    const int fd = static_cast<int>(event.data.u64 & 0xFFFFFFFF);
    const auto at = watched_.find(fd);
    // Unwatched by a handler before, or the number already names another descriptor.
    if (at == watched_.end() || at->second.serial != event.data.u64 >> 32) return;
    const std::shared_ptr<Handler> handler = at->second.handler;  // lives through its own unwatch
    (*handler)(from_epoll(event.events));
  }

  base::Fd epoll_;
  std::unordered_map<int, Watched> watched_;
  std::uint32_t next_serial_ = 0;
};

}  // namespace

base::Result<std::unique_ptr<Reactor>> make_epoll_reactor() { return EpollReactor::make(); }

}  // namespace pickd::net

// The reactor over io_uring: polls that stay (multishot), and a look at what was just handled.
//
// A poll that stays tells of news: it completes when the state of the descriptor changes, not while
// it stays ready. Reactors are level-triggered, so each descriptor whose handler was called is
// looked at again in the next turn, all of a turn with one poll(2), until it is not ready any more.
//
//   watch() ---> to_arm_ ---turn begins---> armed ---completion---> handler ---> handled_
//                                             |                       ^             |
//                                             |                       '---ready-----+---not---> .
//                                             '---unwatch(), change(): taken back at once
//
// One-shot polls, armed anew after every call, would be level-triggered by themselves and cost two
// to five times as much as epoll where descriptors stay ready.
//
// A poll in the kernel holds its file open. So it is taken back before unwatch() returns: a caller
// that closes the descriptor then has closed it, and the address of a listener is free again. And
// no poll is submitted later than it was asked for with a number that may name another file by
// then: descriptors that wait to be armed are looked up in watched_ when their turn comes.
#include <liburing.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/base/fd.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/net/reactor_base.hpp"

namespace pickd::net {

namespace {

constexpr unsigned kCompletionsPerEntry = 4;
constexpr unsigned kEventsAtOnce = 64;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kRestNs = 1'000'000;  // before what the kernel had no memory for
constexpr std::uint64_t kTryNs = kSecondNs;   // for what completes at once
constexpr int kSubmitTriesMax = 100;
constexpr std::uint64_t kNobody = 0;  // the tag of completions that nobody waits for

// Completions come when they are asked for, by the thread that waits: no interrupts, no locks.
// Linux 6.1; the next ones are those of 5.19 and of before.
constexpr unsigned kSetups[] = {
    IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    IORING_SETUP_CQSIZE | IORING_SETUP_COOP_TASKRUN, IORING_SETUP_CQSIZE};

// The features without which completions could be lost (NODROP) or a wait could not end (EXT_ARG).
constexpr std::uint32_t kFeaturesNeeded = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;

std::uint32_t to_poll(std::uint32_t interest) {
  std::uint32_t events = POLLRDHUP;
  if ((interest & kReadable) != 0) events |= POLLIN;
  if ((interest & kWritable) != 0) events |= POLLOUT;
  return events;
}

std::uint32_t from_poll(std::uint32_t events) {
  std::uint32_t readiness = 0;
  if ((events & POLLIN) != 0) readiness |= kReadable;
  if ((events & POLLOUT) != 0) readiness |= kWritable;
  if ((events & (POLLHUP | POLLERR | POLLRDHUP)) != 0) readiness |= kHungUp;
  return readiness;
}

base::Error uring_error(const std::string& what, int code) {
  return {code, what + ": " + std::strerror(-code)};
}

class Ring {
 public:
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { close(); }

  bool made() const { return made_; }
  void close() {
    if (made_) ::io_uring_queue_exit(&ring_);
    made_ = false;
  }

  base::Result<void> make(unsigned entries) {
    io_uring_params params{};
    int made = -EINVAL;
    for (const unsigned setup : kSetups) {
      if (made != -EINVAL) break;
      params = {};
      params.flags = setup;
      params.cq_entries = entries * kCompletionsPerEntry;
      made = ::io_uring_queue_init_params(entries, &ring_, &params);
    }
    if (made < 0) return uring_error("io_uring_setup", made);
    made_ = true;
    if ((params.features & kFeaturesNeeded) != kFeaturesNeeded)
      return base::Error{-ENOSYS, "io_uring lacks what Linux 5.11 brought (NODROP, EXT_ARG)"};
    return probe_operations();
  }

  io_uring* get() { return &ring_; }

 private:
  base::Result<void> probe_operations() {
    io_uring_probe* probe = ::io_uring_get_probe_ring(&ring_);
    if (probe == nullptr) return base::Error{-ENOSYS, "io_uring_register: no probe of operations"};
    const bool poll = ::io_uring_opcode_supported(probe, IORING_OP_POLL_ADD) != 0;
    const bool cancel = ::io_uring_opcode_supported(probe, IORING_OP_ASYNC_CANCEL) != 0;
    ::io_uring_free_probe(probe);
    if (poll && cancel) return {};
    return base::Error{-ENOSYS, "io_uring has no POLL_ADD or no ASYNC_CANCEL"};
  }

  io_uring ring_{};
  bool made_ = false;
};

class IoUringReactor final : public ReactorBase {
 public:
  static base::Result<std::unique_ptr<Reactor>> make(unsigned entries) {
    auto bell = make_bell();
    if (!bell) return bell.error();
    std::unique_ptr<IoUringReactor> reactor(new IoUringReactor(std::move(*bell)));
    reactor->entries_ = entries;
    if (auto made = reactor->ring_.make(entries); !made) return made.error();
    if (auto tried = reactor->try_out(); !tried) return tried.error();
    if (auto watched = reactor->watch_bell(); !watched) return watched.error();
    return std::unique_ptr<Reactor>(std::move(reactor));
  }

  // Closing the ring takes its polls back too, but some time later.
  ~IoUringReactor() override {
    if (thread_ != std::this_thread::get_id()) return;
    for (const auto& [fd, watched] : watched_) {
      if (watched.armed) take_back(tag(watched.serial, fd));
    }
  }

  base::Result<void> watch(int fd, std::uint32_t interest, Handler handler) override {
    struct stat status {};
    if (::fstat(fd, &status) != 0) return base::errno_error("io_uring watch");
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
      return base::Error{-EPERM, "io_uring watch: a file is always ready"};  // as epoll says
    if (watched_.contains(fd)) return base::Error{-EEXIST, "io_uring watch: already watched"};
    watched_[fd] = {0, false, false, interest, std::make_shared<Handler>(std::move(handler))};
    to_arm_.push_back(fd);
    return {};
  }

  base::Result<void> change(int fd, std::uint32_t interest) override {
    const auto at = watched_.find(fd);
    if (at == watched_.end()) return base::Error{-ENOENT, "io_uring change: not watched"};
    Watched& watched = at->second;
    watched.interest = interest;
    come_home();
    if (!watched.armed) return {};           // armed with the new interest when its turn comes
    queue_removal(tag(watched.serial, fd));  // nobody waits for it: goes with the next turn's polls
    disarm(fd, watched);
    return {};
  }

  void unwatch(int fd) override {
    come_home();
    const auto at = watched_.find(fd);
    if (at == watched_.end()) return;
    const bool armed = at->second.armed;
    const std::uint64_t poll = tag(at->second.serial, fd);
    watched_.erase(at);
    if (armed) return take_back(poll);
    submit_all();  // a change may have left the poll before this one to be taken back
  }

  std::string name() const override { return "io_uring"; }

 private:
  struct Watched {
    std::uint32_t serial;  // of its newest poll
    bool armed;            // that poll is with the kernel
    bool handled;          // stands in handled_
    std::uint32_t interest;
    std::shared_ptr<Handler> handler;
  };
  struct Completion {
    std::uint64_t tag;
    int result;
    bool stays;  // its poll
  };
  struct Ready {
    std::uint64_t tag;
    std::uint32_t events;
  };

  explicit IoUringReactor(base::Fd bell) : ReactorBase(std::move(bell)) {}

  static std::uint64_t tag(std::uint32_t serial, int fd) {
    return (static_cast<std::uint64_t>(serial) << 32) | static_cast<std::uint32_t>(fd);
  }

  // Its poll counts no more, nor what that told; it is armed anew with the next turn.
  void disarm(int fd, Watched& watched) {
    watched.serial = 0;
    watched.armed = false;
    watched.handled = false;
    to_arm_.push_back(fd);
  }

  // A ring belongs to the thread that made it. Whoever makes a reactor on one thread and runs it on
  // another gets another ring there, once.
  void come_home() {
    if (ring_.made() && thread_ == std::this_thread::get_id()) return;
    ring_.close();
    completions_.clear();
    handled_.clear();
    ready_.clear();
    for (auto& [fd, watched] : watched_) disarm(fd, watched);
    thread_ = std::this_thread::get_id();
    static_cast<void>(ring_.make(entries_));  // else tried again with the next turn
  }

  // Null only when the kernel takes nothing for a long time.
  io_uring_sqe* entry() {
    if (!ring_.made()) return nullptr;
    if (io_uring_sqe* free = ::io_uring_get_sqe(ring_.get()); free != nullptr) return free;
    submit_all();  // full
    return ::io_uring_get_sqe(ring_.get());
  }

  // The kernel may take a part, want completions to be taken first, or be out of memory for a
  // moment. What it does not take stays in the queue, in order.
  void submit_all() {
    if (!ring_.made()) return;
    for (int tries = 0; ::io_uring_sq_ready(ring_.get()) != 0; ++tries) {
      // And ends what was taken back: completions wait to be asked for.
      const int taken = ::io_uring_submit_and_get_events(ring_.get());
      if (taken > 0 || taken == -EINTR) continue;
      if (tries >= kSubmitTriesMax) return;
      reap();
      if (taken != -EBUSY) ::poll(nullptr, 0, 1);
    }
  }

  void reap() {
    io_uring_cqe* taken[kEventsAtOnce];
    while (const unsigned count = ::io_uring_peek_batch_cqe(ring_.get(), taken, kEventsAtOnce)) {
      for (unsigned at = 0; at < count; ++at)
        completions_.push_back({::io_uring_cqe_get_data64(taken[at]), taken[at]->res,
                                (taken[at]->flags & IORING_CQE_F_MORE) != 0});
      ::io_uring_cq_advance(ring_.get(), count);
    }
  }

  bool queue_removal(std::uint64_t poll) {
    io_uring_sqe* sqe = entry();
    if (sqe == nullptr) return false;
    // Not a removal of the poll: that one is refused while the kernel has news of it to deliver,
    // and the poll would hold its file for ever.
    ::io_uring_prep_cancel64(sqe, poll, 0);
    ::io_uring_sqe_set_data64(sqe, kNobody);
    return true;
  }

  // When it returns, the kernel holds no reference for this poll. Its completion, if it came
  // first, carries a serial that nobody has any more.
  void take_back(std::uint64_t poll) {
    if (queue_removal(poll)) submit_all();
  }

  void arm_all() {
    std::size_t done = 0;
    for (; done < to_arm_.size(); ++done) {
      const int fd = to_arm_[done];
      const auto at = watched_.find(fd);
      if (at == watched_.end() || at->second.armed) continue;
      io_uring_sqe* sqe = entry();
      if (sqe == nullptr) break;  // the rest in the next turn
      Watched& watched = at->second;
      if (++next_serial_ == 0) ++next_serial_;  // a tag is never kNobody
      watched.serial = next_serial_;
      watched.armed = true;
      watched.handled = false;
      ::io_uring_prep_poll_multishot(sqe, fd, to_poll(watched.interest));
      ::io_uring_sqe_set_data64(sqe, tag(watched.serial, fd));
    }
    to_arm_.erase(to_arm_.begin(), to_arm_.begin() + static_cast<std::ptrdiff_t>(done));
  }

  // Submits, and waits for a completion unless there is something to do.
  int submit_and_wait() {
    if (!completions_.empty() || !ready_.empty())
      return ::io_uring_submit_and_get_events(ring_.get());
    const auto wait = wait_ns();
    if (!wait) return ::io_uring_submit_and_wait(ring_.get(), 1);
    return wait_for(*wait);
  }

  int wait_for(std::uint64_t wait_ns) {
    io_uring_cqe* first = nullptr;
    __kernel_timespec time{};
    time.tv_sec = static_cast<std::int64_t>(wait_ns / kSecondNs);
    time.tv_nsec = static_cast<std::int64_t>(wait_ns % kSecondNs);
    return ::io_uring_submit_and_wait_timeout(ring_.get(), &first, 1, &time, nullptr);
  }

  void handle_events() override {
    come_home();
    if (!ring_.made()) {
      ::poll(nullptr, 0, 1);
      return;
    }
    arm_all();
    drop_old_news();
    look_at_handled();
    const int waited = submit_and_wait();
    if (waited < 0 && waited != -ETIME && waited != -EINTR && waited != -EBUSY)
      ::poll(nullptr, 0, 1);  // the kernel is short of something: no spinning
    reap();
    for (const Ready& ready : std::exchange(ready_, {})) {
      if (Watched* watched = find(ready.tag); watched != nullptr) call(*watched, ready);
    }
    const std::size_t count = std::min<std::size_t>(completions_.size(), kEventsAtOnce);
    // By index and by copy: a handler that submits may add to the vector.
    for (std::size_t at = 0; at < count; ++at) handle(Completion(completions_[at]));
    completions_.erase(completions_.begin(),
                       completions_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Nobody, if it was unwatched or changed since, or the number already names another descriptor.
  Watched* find(std::uint64_t tag) {
    const auto at = watched_.find(static_cast<int>(tag & 0xFFFFFFFF));
    return at == watched_.end() || at->second.serial != tag >> 32 ? nullptr : &at->second;
  }

  // What became ready while its handler ran may have been taken by that handler: the look says.
  void drop_old_news() {
    if (handled_.empty()) return;
    reap();
    std::erase_if(completions_, [this](const Completion& completion) {
      const Watched* watched = find(completion.tag);
      return watched != nullptr && watched->handled && completion.stays && completion.result >= 0;
    });
  }

  // Takes the first of those whose handlers were called to ready_, where they are ready still.
  void look_at_handled() {
    const std::size_t count = std::min<std::size_t>(handled_.size(), kEventsAtOnce);
    if (count == 0) return;
    pollfd looked_at[kEventsAtOnce];
    for (std::size_t at = 0; at < count; ++at) {
      Watched* watched = find(handled_[at]);
      if (watched != nullptr) watched->handled = false;
      // A negative number is passed over.
      looked_at[at] = {watched == nullptr ? -1 : static_cast<int>(handled_[at] & 0xFFFFFFFF),
                       static_cast<short>(watched == nullptr ? 0 : to_poll(watched->interest)), 0};
    }
    if (::poll(looked_at, count, 0) > 0) {
      for (std::size_t at = 0; at < count; ++at) {
        const auto events = static_cast<std::uint16_t>(looked_at[at].revents);
        if (events != 0 && (events & POLLNVAL) == 0) ready_.push_back({handled_[at], events});
      }
    }
    handled_.erase(handled_.begin(), handled_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void call(Watched& watched, const Ready& ready) {
    if (watched.handled) return;  // in this turn already; the next one looks at it
    watched.handled = true;
    handled_.push_back(ready.tag);
    const std::shared_ptr<Handler> handler = watched.handler;  // lives through its own unwatch
    (*handler)(from_poll(ready.events));
  }

  void handle(const Completion& completion) {
    Watched* watched = find(completion.tag);
    if (watched == nullptr) return;
    const int fd = static_cast<int>(completion.tag & 0xFFFFFFFF);
    if (completion.result < 0) {
      watched->armed = false;
      return arm_after_failure(fd, completion.result);
    }
    if (!completion.stays) {
      // Looked up anew when its turn comes: the handler may have unwatched it.
      watched->armed = false;
      to_arm_.push_back(fd);
    }
    call(*watched, {completion.tag, static_cast<std::uint32_t>(completion.result)});
  }

  void arm_after_failure(int fd, int code) {
    if (code == -EBADF) return;  // closed while watched: as with epoll, nothing comes any more
    after(kRestNs, [this, fd] { to_arm_.push_back(fd); });
  }

  // Some sandboxes let the ring be made and refuse to use it, or know only a part of it: so a poll
  // completes, stays and is taken back before anything depends on that.
  base::Result<void> try_out() {
    constexpr std::uint64_t kTried = 1;
    submit_poll(kTried, POLLOUT);  // a bell that nobody rang can be rung
    if (auto seen = expect(kTried, POLLOUT); !seen) return seen;
    take_back(kTried);
    return expect(kTried, -ECANCELED);
  }

  void submit_poll(std::uint64_t poll, unsigned events) {
    io_uring_sqe* sqe = entry();
    if (sqe == nullptr) return;  // expect() says so
    ::io_uring_prep_poll_multishot(sqe, bell(), events);
    ::io_uring_sqe_set_data64(sqe, poll);
  }

  base::Result<void> expect(std::uint64_t poll, int result) {
    while (true) {
      const int waited = completions_.empty() ? wait_for(kTryNs) : 0;
      reap();
      if (waited == -EINTR) continue;
      if (waited < 0) return uring_error("io_uring poll", waited);
      for (const Completion& seen : std::exchange(completions_, {})) {
        if (seen.tag == kNobody) continue;
        const bool as_meant = seen.result == result && seen.stays == (result >= 0);
        if (seen.tag == poll && as_meant) return {};
        return base::Error{-ENOSYS, "io_uring poll: gave " + std::to_string(seen.result) +
                                        " in place of " + std::to_string(result)};
      }
    }
  }

  Ring ring_;
  unsigned entries_ = 0;
  std::thread::id thread_ = std::this_thread::get_id();  // whose the ring is
  std::unordered_map<int, Watched> watched_;
  std::vector<int> to_arm_;
  std::vector<std::uint64_t> handled_;   // tags: called, and perhaps ready still
  std::vector<Ready> ready_;             // of those, in this turn
  std::vector<Completion> completions_;  // taken from the ring, not handled yet
  std::uint32_t next_serial_ = 0;
};

}  // namespace

base::Result<std::unique_ptr<Reactor>> make_io_uring_reactor(unsigned entries) {
  return IoUringReactor::make(entries);
}

}  // namespace pickd::net

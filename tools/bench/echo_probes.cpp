#include "tools/bench/echo_probes.hpp"

#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "daemon/base/clock.hpp"

namespace pickd::bench {

namespace {

constexpr std::size_t kWarmUp = 20;

// What the echo is told before a run.
struct EchoPlan {
  std::uint64_t bytes;
  std::uint64_t answer_bytes;
  std::uint64_t turns;
};

bool read_whole(int fd, std::byte* to, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t got = ::read(fd, to, bytes);
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_whole(int fd, const std::byte* from, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t put = ::write(fd, from, bytes);
    if (put <= 0) return false;
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

void echo_eventfd(int request, int answer) {
  std::uint64_t value = 0;
  while (::read(request, &value, sizeof value) == sizeof value) {
    value = 1;
    if (::write(answer, &value, sizeof value) != sizeof value) return;
  }
}

class EventfdProbe : public EchoProbe {
 public:
  EventfdProbe()
      : request_(::eventfd(0, EFD_CLOEXEC)),
        answer_(::eventfd(0, EFD_CLOEXEC)),
        child_([this] { echo_eventfd(request_.get(), answer_.get()); }) {}

  void begin(std::size_t, std::size_t, std::size_t) override {}
  void once() override {
    std::uint64_t value = 1;
    if (::write(request_.get(), &value, sizeof value) != sizeof value ||
        ::read(answer_.get(), &value, sizeof value) != sizeof value) {
      throw std::runtime_error("eventfd probe: the echo is gone");
    }
  }

 private:
  base::Fd request_;
  base::Fd answer_;
  EchoChild child_;
};

void echo_unix(int fd) {
  EchoPlan plan{};
  while (read_whole(fd, reinterpret_cast<std::byte*>(&plan), sizeof plan)) {
    std::vector<std::byte> record(plan.bytes);
    const std::vector<std::byte> answer(plan.answer_bytes);
    for (std::uint64_t turn = 0; turn < plan.turns; ++turn) {
      if (!read_whole(fd, record.data(), record.size())) return;
      if (!write_whole(fd, answer.data(), answer.size())) return;
    }
  }
}

class UnixProbe : public EchoProbe {
 public:
  UnixProbe() : ends_(make_ends()), child_([this] { serve(); }) { ends_.theirs.reset(); }

  void begin(std::size_t bytes, std::size_t answer_bytes, std::size_t turns) override {
    const EchoPlan plan{bytes, answer_bytes, turns};
    if (!write_whole(ends_.ours.get(), reinterpret_cast<const std::byte*>(&plan), sizeof plan))
      throw std::runtime_error("Unix stream probe: the echo is gone");
    record_.resize(bytes);
    answer_.resize(answer_bytes);
  }
  void once() override {
    if (!write_whole(ends_.ours.get(), record_.data(), record_.size()) ||
        !read_whole(ends_.ours.get(), answer_.data(), answer_.size())) {
      throw std::runtime_error("Unix stream probe: the echo is gone");
    }
  }

 private:
  struct Ends {
    base::Fd ours;
    base::Fd theirs;
  };
  static Ends make_ends() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("Unix stream probe: no socket");
    return {base::Fd(ends[0]), base::Fd(ends[1])};
  }
  void serve() {
    ends_.ours.reset();
    echo_unix(ends_.theirs.get());
  }

  Ends ends_;
  EchoChild child_;
  std::vector<std::byte> record_;
  std::vector<std::byte> answer_;
};

}  // namespace

void EchoProbe::run(std::size_t bytes, std::size_t answer_bytes, std::size_t count,
                    tools::Samples& samples) {
  begin(bytes, answer_bytes, count + kWarmUp);
  for (std::size_t at = 0; at < count + kWarmUp; ++at) {
    const std::uint64_t from_ns = base::monotonic_ns();
    once();
    const std::uint64_t to_ns = base::monotonic_ns();
    if (at >= kWarmUp) samples.add(static_cast<double>(to_ns - from_ns));
  }
  end();
}

pid_t EchoChild::fork_child() {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("an echo process could not be forked");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) leave();
  }
  return pid;
}

void EchoChild::leave() { ::_exit(0); }

EchoChild::~EchoChild() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::unique_ptr<EchoProbe> make_eventfd_probe() { return std::make_unique<EventfdProbe>(); }
std::unique_ptr<EchoProbe> make_unix_probe() { return std::make_unique<UnixProbe>(); }

}  // namespace pickd::bench

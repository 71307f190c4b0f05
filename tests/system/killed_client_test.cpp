// A client that is killed at every step: before each instruction of the library (and of the C
// library below it) once. A first life is single-stepped to learn which instructions there are;
// each further life runs up to a breakpoint at one of them and is killed there. So no step is
// forgotten, and the library that is tried is the one that is shipped.
//
// LONG_TESTS tries every instruction, the ordinary run one in so many.
#include <poll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <unordered_set>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr std::size_t kKillsInAnOrdinaryRun = 400;
constexpr std::int64_t kWaitUs = 30'000'000;

using Address = std::uintptr_t;

// One life of a client under ptrace. It stops (SIGSTOP) before what is tried, and after it.
class Life {
 public:
  explicit Life(const std::function<int(const std::function<void()>& stop)>& body)
      : child_([body](Forked&) {
          if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 77;
          return body([] { ::raise(SIGSTOP); });
        }) {}

  // True when it stands at the beginning of what is tried.
  bool begin() { return wait_for_stop() == SIGSTOP; }

  // Steps through it to its end: each instruction once, in order of its first execution.
  std::vector<Address> instructions() {
    std::vector<Address> found;
    std::unordered_set<Address> known;
    for (;;) {
      if (::ptrace(PTRACE_SINGLESTEP, child_.pid(), nullptr, nullptr) != 0) break;
      if (wait_for_stop() != SIGTRAP) break;
      user_regs_struct registers{};
      ::ptrace(PTRACE_GETREGS, child_.pid(), nullptr, &registers);
      if (known.insert(registers.rip).second) found.push_back(registers.rip);
    }
    return found;
  }

  // Runs until it is about to execute `at`. False when it came to its end without.
  bool run_to(Address at) {
    errno = 0;
    const long word = ::ptrace(PTRACE_PEEKTEXT, child_.pid(), at, nullptr);
    if (errno != 0) return false;
    const long trap = (word & ~0xFFL) | 0xCC;
    if (::ptrace(PTRACE_POKETEXT, child_.pid(), at, trap) != 0) return false;
    if (::ptrace(PTRACE_CONT, child_.pid(), nullptr, nullptr) != 0) return false;
    return wait_for_stop() == SIGTRAP;
  }

  void kill() {
    child_.kill(SIGKILL);
    child_.wait();
  }

 private:
  // The signal it stopped with; 0 when it ended.
  int wait_for_stop() const {
    int status = 0;
    if (::waitpid(child_.pid(), &status, 0) != child_.pid() || !WIFSTOPPED(status)) return 0;
    return WSTOPSIG(status);
  }

  Forked child_;
};

// A gateway that picks and reports all the time, in a process of its own, at e3.
class Bystander {
 public:
  explicit Bystander(Daemon& daemon)
      : picks_(new (::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<std::uint64_t>(0)),
        process_([this, socket = daemon.socket()](Forked& self) {
          const Client client(socket);
          const Result result;
          Request request("bystander");
          request.subset({"e3"});
          self.say('r');
          // Until the other side closes or speaks.
          while (!self.spoken_to()) {
            if (pick(client, request, result, kWaitUs) != 0 || result.degraded()) return 1;
            if (client.report(result.ticket(), PICKD_REPORT_DONE) != 0) return 2;
            ++*picks_;
          }
          return 0;
        }) {
    EXPECT_EQ(process_.hear(), 'r');
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander() { ::munmap(picks_, sizeof *picks_); }

  std::uint64_t picks() const { return *picks_; }
  int end() {
    process_.say('e');
    return process_.wait();
  }

 private:
  std::atomic<std::uint64_t>* picks_;
  Forked process_;
};

struct Release {
  bool complete = false;
  double ms = 0;
};

// Waits until the daemon holds nothing of the dead client any more.
Release wait_for_release(Daemon& daemon, const StatusView& before) {
  const auto from = std::chrono::steady_clock::now();
  Release release;
  while (!release.complete && std::chrono::steady_clock::now() - from < kGenerous) {
    const StatusView now = daemon.status();
    const auto endpoints = daemon.endpoints();
    release.complete = now.clients == before.clients && now.channels == before.channels &&
                       std::all_of(endpoints.begin(), endpoints.end(), [](const auto& entry) {
                         return entry.first == "e3" || (entry.second.inflight_requests == 0 &&
                                                        entry.second.inflight_tokens == 0);
                       });
  }
  release.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
  return release;
}

void kill_at_every_step(
    const char* what,
    const std::function<int(const std::string& socket, const std::function<void()>& stop)>& body) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "knows the breakpoints and registers of x86-64 only";
#endif
  Daemon daemon;
  Bystander bystander(daemon);
  const std::string socket = daemon.socket();
  const auto live = [&](const std::function<void()>& stop) { return body(socket, stop); };
  const StatusView before = daemon.status();

  std::vector<Address> steps;
  {
    Life whole(live);
    if (!whole.begin()) GTEST_SKIP() << "this place allows no ptrace of own children";
    steps = whole.instructions();
    whole.kill();
    ASSERT_TRUE(wait_for_release(daemon, before).complete);
  }
  ASSERT_GT(steps.size(), 200U) << "too few to be what is tried";

  const std::size_t stride =
      std::getenv("LONG_TESTS") != nullptr ? 1 : 1 + steps.size() / kKillsInAnOrdinaryRun;
  std::vector<double> took_ms;
  std::size_t tried = 0;
  for (std::size_t at = 0; at < steps.size(); at += stride) {
    ++tried;
    Life life(live);
    ASSERT_TRUE(life.begin());
    const bool reached = life.run_to(steps[at]);
    const std::uint64_t picks = bystander.picks();
    life.kill();
    const Release release = wait_for_release(daemon, before);
    ASSERT_TRUE(release.complete) << "killed at instruction " << at << " of " << steps.size()
                                  << ", something stays held: " << daemon.inflight()
                                  << " in flight, " << daemon.status().channels << " channels";
    if (reached) took_ms.push_back(release.ms);
    ASSERT_TRUE(eventually([&] { return bystander.picks() > picks; })) << "the others wait";
  }
  EXPECT_EQ(bystander.end(), 0) << "another client's pick failed or was degraded";
  // What depends on whether the daemon sleeps is not run in every life.
  ASSERT_GT(took_ms.size(), tried / 2);
  std::sort(took_ms.begin(), took_ms.end());
  std::printf(
      "%s: killed at %zu of %zu instructions; all was released after %.1f ms (median), %.1f ms "
      "(p95), %.1f ms (longest); %llu picks of another client meanwhile\n",
      what, took_ms.size(), steps.size(), took_ms[took_ms.size() / 2],
      took_ms[took_ms.size() * 95 / 100], took_ms.back(),
      static_cast<unsigned long long>(bystander.picks()));
  const StatusView after = daemon.status();
  for (const char* name : {"channels_broken", "submissions_malformed", "control_malformed"}) {
    EXPECT_EQ(after.counters.at(name), 0U) << name << ": half a step was taken for a whole one";
  }
}

// Waits on the descriptor, as an event loop does.
bool next(pickd_queue* queue, const Result& result) {
  std::uint64_t data = 0;
  for (;;) {
    const int taken = pickd_queue_poll(queue, result.get(), &data);
    if (taken != 0) return taken == 1 && pickd_result_status(result.get()) == 0;
    pollfd waiting{pickd_queue_event_fd(queue), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kWaitUs / 1000)) != 1) return false;
  }
}

// Submit, poll, report, cancel of a queue, and the blocking calls; one request stays open.
int work(const Client& client, pickd_queue* queue, Request& request, const Result& result) {
  pickd_report_info report = PICKD_REPORT_INIT;
  pickd_ticket dropped{};
  for (std::uint64_t data = 0; data < 2; ++data) {
    if (pickd_queue_submit(queue, &request.raw, data, nullptr) != 0) return 1;
  }
  if (!next(queue, result)) return 2;
  report.ticket = result.ticket();
  for (const pickd_report_kind kind : {PICKD_REPORT_FIRST_TOKEN, PICKD_REPORT_DONE}) {
    report.kind = kind;
    if (pickd_queue_report(queue, &report) != 0) return 3;
  }
  if (!next(queue, result)) return 4;
  if (pickd_queue_submit(queue, &request.raw, 9, &dropped) != 0) return 5;
  if (pickd_queue_cancel(queue, dropped) != 0) return 6;
  if (pick(client, request, result, kWaitUs) != 0) return 7;
  report.ticket = result.ticket();
  report.kind = PICKD_REPORT_DONE;
  return pickd_report(client.get(), &report, kWaitUs);
}

TEST(SystemKilledClient, CostsNothingAtAnyStepOfSubmitPollAndReport) {
  kill_at_every_step("submit, poll and report",
                     [](const std::string& socket, const std::function<void()>& stop) {
                       const Client client(socket);
                       pickd_queue* queue = nullptr;
                       if (pickd_queue_open(client.get(), 16, &queue) != 0) return 10;
                       const Result result;
                       Request request(prompt_of(700, 1));
                       request.subset({"e0", "e1", "e2"});
                       // Once before: what is done at the first call only is not what is tried.
                       if (const int code = work(client, queue, request, result); code != 0)
                         return code;
                       stop();
                       const int code = work(client, queue, request, result);
                       stop();
                       return code;
                     });
}

TEST(SystemKilledClient, CostsNothingAtAnyStepOfOpeningAndClosing) {
  kill_at_every_step("open and close",
                     [](const std::string& socket, const std::function<void()>& stop) {
                       for (int turn = 0; turn < 2; ++turn) {
                         if (turn == 1) stop();
                         Client client(socket);
                         pickd_queue* queue = nullptr;
                         if (pickd_queue_open(client.get(), 16, &queue) != 0) return 10;
                         pickd_queue_close(queue);
                         client.close();
                       }
                       stop();
                       return 0;
                     });
}

}  // namespace
}  // namespace pickd::systests

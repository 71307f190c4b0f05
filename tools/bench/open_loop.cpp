#include "tools/bench/open_loop.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "abi/fence.hpp"
#include "daemon/base/clock.hpp"
#include "tools/bench/prompt_text.hpp"

namespace pickd::bench {

namespace {

constexpr std::uint64_t kPaceBySleepNs = 100'000;  // a shorter pause is spun
constexpr std::uint32_t kPrompts = 64;

// How both sides wait.
struct Strategy {
  const char* name;
  std::uint32_t daemon_spin_us;
  bool daemon_busy_poll;
  std::uint32_t client_spin_us;
  std::uint32_t client_flags;
};
constexpr Strategy kStrategies[] = {
    {"block", 0, false, PICKD_NO_SPIN, 0},
    {"default", DaemonOptions::kSpinDefault, false, 0, 0},
    {"spin", 0, true, 0, PICKD_OPEN_BUSY_POLL},
};

const Strategy& strategy_of(const std::string& name) {
  for (const Strategy& strategy : kStrategies) {
    if (name == strategy.name) return strategy;
  }
  throw std::runtime_error("--wait " + name + ": block, default or spin");
}

class PickSubject : public LoopSubject {
 public:
  PickSubject(const Strategy& strategy, const PickSubjectOptions& options) {
    DaemonOptions daemon_options;
    daemon_options.endpoints = options.endpoints;
    daemon_options.spin_us = strategy.daemon_spin_us;
    daemon_options.busy_poll = strategy.daemon_busy_poll;
    daemon_options.state_mib = 64;
    daemon_ = std::make_unique<DaemonProcess>(daemon_options);
    for (std::uint32_t at = 0; at < options.clients; ++at) {
      pickd_options open = PICKD_OPTIONS_INIT;
      open.socket_path = daemon_->socket().c_str();
      open.name = "pickd-bench";
      open.spin_us = strategy.client_spin_us;
      open.flags = strategy.client_flags;
      pickd_client* client = nullptr;
      check(pickd_open(&open, &client), "open");
      clients_.emplace_back(client);
      results_.emplace_back(pickd_result_new());
    }
    for (std::uint32_t at = 0; at < kPrompts; ++at)
      prompts_.push_back(make_prompt_text(options.prompt_tokens, at));
    daemon_->rest();
  }
  ~PickSubject() override { daemon_->go_on(); }
  PickSubject(const PickSubject&) = delete;
  PickSubject& operator=(const PickSubject&) = delete;

  void before_slice() override { daemon_->go_on(); }
  void after_slice() override { daemon_->rest(); }

  void once(std::uint32_t client, std::uint64_t turn) override {
    const std::string& text = prompts_[turn % prompts_.size()];
    const pickd_slice slice{text.data(), text.size()};
    pickd_request request = PICKD_REQUEST_INIT;
    request.text = &slice;
    request.text_count = 1;
    pickd_result* result = results_[client].get();
    check(pickd_pick(clients_[client].get(), &request, PICKD_NO_DEADLINE, result), "pick");
    pickd_report_info report = PICKD_REPORT_INIT;
    report.ticket = pickd_result_ticket(result);
    report.kind = PICKD_REPORT_DONE;
    check(pickd_report(clients_[client].get(), &report, 0), "report");
  }

 private:
  std::unique_ptr<DaemonProcess> daemon_;
  std::vector<Client> clients_;
  std::vector<ResultHandle> results_;
  std::vector<std::string> prompts_;
};

class WakeSubject : public LoopSubject {
 public:
  void once(std::uint32_t, std::uint64_t) override { probe_->once(); }

 private:
  std::unique_ptr<EchoProbe> probe_ = make_eventfd_probe();
};

void wait_until(std::uint64_t at_ns) {
  const std::uint64_t now_ns = base::monotonic_ns();
  if (at_ns > now_ns && at_ns - now_ns >= kPaceBySleepNs) {
    const timespec until{static_cast<time_t>(at_ns / 1'000'000'000),
                         static_cast<long>(at_ns % 1'000'000'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  while (base::monotonic_ns() < at_ns) abi::spin_pause();
}

struct Span {
  std::uint64_t from_ns;
  std::uint64_t to_ns;
  double period_ns;
};

void run_client(LoopSubject& subject, std::uint32_t client, const Span& span,
                std::vector<double>& samples) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const std::uint64_t give_up_ns = span.to_ns + (span.to_ns - span.from_ns);
  bool given_up = false;
  for (std::uint64_t turn = 0;; ++turn) {
    const auto due_ns =
        span.from_ns + static_cast<std::uint64_t>(span.period_ns * static_cast<double>(turn));
    if (due_ns >= span.to_ns) return;
    if (!given_up) {
      wait_until(due_ns);
      subject.once(client, turn);
    }
    const std::uint64_t now_ns = given_up ? give_up_ns : base::monotonic_ns();
    samples.push_back(static_cast<double>(now_ns - due_ns));
    given_up = now_ns >= give_up_ns;
  }
}

}  // namespace

Hogs::Hogs(std::uint32_t count) {
  for (std::uint32_t at = 0; at < count; ++at) {
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("a hog could not be forked");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile std::uint64_t turn = 0;;) turn = turn + 1;
    }
    children_.push_back(child);
  }
}

Hogs::~Hogs() {
  for (const pid_t child : children_) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

std::unique_ptr<LoopSubject> make_pick_subject(const std::string& wait,
                                               const PickSubjectOptions& options) {
  return std::make_unique<PickSubject>(strategy_of(wait), options);
}

std::unique_ptr<LoopSubject> make_wake_subject() { return std::make_unique<WakeSubject>(); }

tools::Samples run_slice(LoopSubject& subject, const LoopPace& pace) {
  subject.before_slice();
  const std::uint64_t start_ns = base::monotonic_ns() + 10'000'000;
  const auto end_ns = start_ns + static_cast<std::uint64_t>(pace.slice_s * 1e9);
  std::vector<std::vector<double>> samples(pace.clients);
  std::vector<std::thread> threads;
  std::vector<std::string> failures(pace.clients);
  for (std::uint32_t at = 0; at < pace.clients; ++at) {
    threads.emplace_back([&, at] {
      // Clients take turns.
      const auto shift_ns = static_cast<std::uint64_t>(1e9 / pace.rate * at);
      try {
        run_client(subject, at, {start_ns + shift_ns, end_ns, 1e9 * pace.clients / pace.rate},
                   samples[at]);
      } catch (const std::runtime_error& error) {
        failures[at] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  subject.after_slice();
  for (const std::string& failure : failures) {
    if (!failure.empty()) throw std::runtime_error(failure);
  }
  tools::Samples all;
  for (const auto& own : samples) {
    for (const double sample : own) all.add(sample);
  }
  return all;
}

}  // namespace pickd::bench

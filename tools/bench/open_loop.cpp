// The open loop: see open_loop.hpp. A pick is due at its intended time whether the one before it
// has been answered or not, and its latency counts from there: a stall is seen by every pick that
// it delays. Strategies take turns in slices, each with a daemon of its own that sleeps meanwhile.
#include "tools/bench/open_loop.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "abi/fence.hpp"
#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "tools/bench/client.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

namespace {

constexpr std::uint64_t kPaceBySleepNs = 100'000;  // a shorter pause is spun
constexpr std::uint32_t kPrompts = 64;

// How both sides wait.
struct Strategy {
  const char* name;
  std::uint32_t daemon_spin_us;
  std::uint32_t client_spin_us;
  std::uint32_t client_flags;
};
constexpr Strategy kStrategies[] = {
    {"block", 0, 0, 0},
    {"adaptive", 50, 50, 0},
    {"spin", 10'000, 0, PICKD_OPEN_BUSY_POLL},
};

const Strategy& strategy_of(const std::string& name) {
  for (const Strategy& strategy : kStrategies) {
    if (name == strategy.name) return strategy;
  }
  throw std::runtime_error("--wait " + name + ": block, adaptive or spin");
}

// Children that do nothing but take time from a core.
class Hogs {
 public:
  explicit Hogs(std::uint32_t count) {
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
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;
  ~Hogs() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

struct Subject {
  explicit Subject(const Strategy& of, const OpenLoopOptions& options) : strategy(of) {
    DaemonOptions daemon_options;
    daemon_options.endpoints = options.endpoints;
    daemon_options.spin_us = strategy.daemon_spin_us;
    daemon_options.state_mib = 64;
    daemon = std::make_unique<DaemonProcess>(daemon_options);
    for (std::uint32_t at = 0; at < options.clients; ++at) {
      pickd_options open = PICKD_OPTIONS_INIT;
      open.socket_path = daemon->socket().c_str();
      open.name = "pickd-bench";
      open.spin_us = strategy.client_spin_us;
      open.flags = strategy.client_flags;
      pickd_client* client = nullptr;
      check(pickd_open(&open, &client), "open");
      clients.emplace_back(client);
    }
    samples.resize(options.clients);
  }

  const Strategy& strategy;
  std::unique_ptr<DaemonProcess> daemon;
  std::vector<Client> clients;
  std::vector<std::vector<double>> samples;  // nanoseconds from the intended time, by client
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

void run_client(const OpenLoopOptions& options, const std::vector<std::string>& prompts,
                pickd_client* client, std::uint64_t from_ns, std::uint64_t to_ns,
                std::vector<double>& samples) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const ResultHandle result(pickd_result_new());
  const double period_ns = 1e9 * options.clients / options.rate;
  for (std::uint64_t turn = 0;; ++turn) {
    const auto due_ns = from_ns + static_cast<std::uint64_t>(period_ns * static_cast<double>(turn));
    if (due_ns >= to_ns) return;
    wait_until(due_ns);
    const std::string& text = prompts[turn % prompts.size()];
    const pickd_slice slice{text.data(), text.size()};
    pickd_request request = PICKD_REQUEST_INIT;
    request.text = &slice;
    request.text_count = 1;
    check(pickd_pick(client, &request, PICKD_NO_DEADLINE, result.get()), "pick");
    samples.push_back(static_cast<double>(base::monotonic_ns() - due_ns));
    pickd_report_info report = PICKD_REPORT_INIT;
    report.ticket = pickd_result_ticket(result.get());
    report.kind = PICKD_REPORT_DONE;
    check(pickd_report(client, &report, PICKD_NO_DEADLINE), "report");
  }
}

void run_slice(const OpenLoopOptions& options, const std::vector<std::string>& prompts,
               Subject& subject) {
  const std::uint64_t start_ns = base::monotonic_ns() + 10'000'000;
  const auto end_ns = start_ns + static_cast<std::uint64_t>(options.slice_s * 1e9);
  const double shift_ns = 1e9 / options.rate;  // clients take turns
  std::vector<std::thread> threads;
  std::vector<std::string> failures(options.clients);
  for (std::uint32_t at = 0; at < options.clients; ++at) {
    threads.emplace_back([&, at] {
      const auto from_ns = start_ns + static_cast<std::uint64_t>(shift_ns * at);
      try {
        run_client(options, prompts, subject.clients[at].get(), from_ns, end_ns,
                   subject.samples[at]);
      } catch (const std::runtime_error& error) {
        failures[at] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) {
    if (!failure.empty()) throw std::runtime_error(failure);
  }
}

}  // namespace

void run_open_loop(const OpenLoopOptions& options) {
  std::vector<std::string> prompts;
  for (std::uint32_t at = 0; at < kPrompts; ++at) {
    base::Random random(at + 1);
    std::string text(static_cast<std::size_t>(options.prompt_tokens) * 4, ' ');
    for (char& letter : text) letter = static_cast<char>('a' + random.below(26));
    prompts.push_back(std::move(text));
  }
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const std::string& wait : options.waits)
    subjects.push_back(std::make_unique<Subject>(strategy_of(wait), options));
  {
    const Hogs hogs(options.hogs);
    for (std::uint32_t slice = 0; slice < options.slices; ++slice) {
      for (const auto& subject : subjects) run_slice(options, prompts, *subject);
    }
  }
  nlohmann::ordered_json out;
  out["rate"] = options.rate;
  out["clients"] = options.clients;
  out["hogs"] = options.hogs;
  if (!options.json) {
    std::printf("open loop: %.0f picks/s, %u clients, %u hogs, from the intended time\n",
                options.rate, options.clients, options.hogs);
  }
  for (const auto& subject : subjects) {
    tools::Samples all;
    for (const auto& own : subject->samples) {
      for (const double sample : own) all.add(sample);
    }
    const double p50 = all.percentile(0.5);
    const double p99 = all.percentile(0.99);
    const std::string name = subject->strategy.name;
    out[name + "_p50_ns"] = p50;
    out[name + "_p99_ns"] = p99;
    if (!options.json) {
      std::printf("%-10s p50 %9.1f us   p99 %9.1f us\n", name.c_str(), p50 / 1e3, p99 / 1e3);
    }
  }
  if (options.json) std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace pickd::bench

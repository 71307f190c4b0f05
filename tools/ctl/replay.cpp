// pickctl replay: a trace's requests as picks to a running daemon, at their times.
//
// They are real picks: they reserve, they are remembered, and each is reported at its end. How long
// an answer takes no trace tells: it follows from two rates that are options.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>
#include <stdexcept>
#include <thread>

#include "pickd/pickd.h"
#include "tools/bench/trace.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/human.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/table.hpp"

namespace pickd::ctl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPickTimeoutUs = 1'000'000;
constexpr std::chrono::milliseconds kLook{100};  // longest pause, so that Ctrl-C is heard
constexpr std::chrono::seconds kProgress{5};

volatile std::sig_atomic_t g_ended = 0;  // written by the handler alone

struct Replay {
  std::string trace;
  std::string model;
  double speed = 1;
  std::uint64_t requests = 0;  // 0: all
  double prefill_us_per_token = 100;
  double itl_ms = 20;
};

struct Report {
  Clock::time_point at;
  pickd_report_kind kind;
  pickd_ticket ticket;
  std::uint32_t prompt_tokens;
  std::uint32_t cached_tokens;
  std::uint32_t output_tokens;
  bool operator>(const Report& other) const { return at > other.at; }
};

struct PerEndpoint {
  std::uint64_t picks = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t match_tokens = 0;
};

struct Outcome {
  std::map<std::string, PerEndpoint> endpoints;
  std::map<std::string, std::uint64_t> refused;  // by the error's words
  std::uint64_t late = 0;                        // picks that began 100 ms or more after their time
};

class Player {
 public:
  Player(const std::string& socket, const Replay& options) : options_(options) {
    pickd_options open = PICKD_OPTIONS_INIT;
    const std::string path = tools::socket_or_default(socket);
    open.socket_path = path.c_str();
    open.name = "pickctl replay";
    open.keys_max = abi::kKeysMax;
    if (const int error = pickd_open(&open, &client_); error != 0)
      throw std::runtime_error(path + ": " + pickd_strerror(error));
    result_ = pickd_result_new();
  }
  ~Player() {
    pickd_result_free(result_);
    pickd_close(client_);
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  Outcome play(const bench::Trace& trace) {
    const Clock::time_point start = Clock::now();
    Clock::time_point told = start;
    std::uint64_t done = 0;
    for (const bench::TraceRequest& request : trace.requests) {
      if (g_ended != 0 || (options_.requests != 0 && done == options_.requests)) break;
      const Clock::time_point due =
          start + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(request.arrival_s / options_.speed));
      wait_until(due);
      if (Clock::now() - due >= std::chrono::milliseconds(100)) ++outcome_.late;
      pick(request);
      ++done;
      if (Clock::now() - told >= kProgress) {
        told = Clock::now();
        std::fprintf(stderr, "pickctl: %" PRIu64 " of %zu requests\n", done, trace.requests.size());
      }
    }
    // What is under way is reported now: nobody waits for answers that are not there.
    for (; !reports_.empty(); reports_.pop()) report(reports_.top());
    return outcome_;
  }

 private:
  void wait_until(Clock::time_point due) {
    while (g_ended == 0) {
      const Clock::time_point now = Clock::now();
      for (; !reports_.empty() && reports_.top().at <= now; reports_.pop()) report(reports_.top());
      if (now >= due) return;
      Clock::time_point next = std::min<Clock::time_point>(due, now + kLook);
      if (!reports_.empty()) next = std::min(next, reports_.top().at);
      std::this_thread::sleep_until(next);
    }
  }

  void pick(const bench::TraceRequest& traced) {
    bench::make_prompt(traced, tokens_);
    pickd_request request = PICKD_REQUEST_INIT;
    request.model = pickd_string(options_.model.empty() ? nullptr : options_.model.c_str());
    request.token_ids = tokens_.data();
    request.token_count = tokens_.size();
    if (const int error = pickd_pick(client_, &request, kPickTimeoutUs, result_); error != 0) {
      ++outcome_.refused[pickd_strerror(error)];
      return;
    }
    const std::uint32_t cached = pickd_result_match_tokens(result_, 0);
    PerEndpoint& of = outcome_.endpoints[pickd_result_name(result_, 0)];
    ++of.picks;
    of.prompt_tokens += traced.input_tokens;
    of.match_tokens += cached;
    const double first_s = (traced.input_tokens - std::min(cached, traced.input_tokens)) *
                           options_.prefill_us_per_token * 1e-6 / options_.speed;
    const double end_s = first_s + traced.output_tokens * options_.itl_ms * 1e-3 / options_.speed;
    const auto at = [now = Clock::now()](double s) {
      return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
    };
    const pickd_ticket ticket = pickd_result_ticket(result_);
    reports_.push({at(first_s), PICKD_REPORT_FIRST_TOKEN, ticket, PICKD_UNKNOWN, PICKD_UNKNOWN,
                   PICKD_UNKNOWN});
    reports_.push(
        {at(end_s), PICKD_REPORT_DONE, ticket, traced.input_tokens, cached, traced.output_tokens});
  }

  void report(const Report& report) {
    pickd_report_info info = PICKD_REPORT_INIT;
    info.ticket = report.ticket;
    info.kind = report.kind;
    info.prompt_tokens = report.prompt_tokens;
    info.cached_tokens = report.cached_tokens;
    info.output_tokens = report.output_tokens;
    if (const int error = pickd_report(client_, &info, kPickTimeoutUs); error != 0)
      ++outcome_.refused[std::string("report: ") + pickd_strerror(error)];
  }

  const Replay& options_;
  pickd_client* client_ = nullptr;
  pickd_result* result_ = nullptr;
  Outcome outcome_;
  std::vector<std::uint32_t> tokens_;
  std::priority_queue<Report, std::vector<Report>, std::greater<>> reports_;
};

void print(const Common& common, const bench::Trace& trace, const Outcome& outcome) {
  PerEndpoint all;
  std::uint64_t busiest = 0;
  for (const auto& [name, of] : outcome.endpoints) {
    all.picks += of.picks;
    all.prompt_tokens += of.prompt_tokens;
    all.match_tokens += of.match_tokens;
    busiest = std::max(busiest, of.picks);
  }
  const auto share = [](std::uint64_t of, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(whole);
  };
  const double hits = share(all.match_tokens, all.prompt_tokens);
  if (common.json) {
    nlohmann::ordered_json out = {{"picks", all.picks},
                                  {"hit_share", hits},
                                  {"bound_hit_share", trace.bound_hit_rate},
                                  {"busiest_share", share(busiest, all.picks)},
                                  {"late", outcome.late},
                                  {"refused", outcome.refused}};
    for (const auto& [name, of] : outcome.endpoints) {
      out["endpoints"].push_back({{"name", name},
                                  {"picks", of.picks},
                                  {"hit_share", share(of.match_tokens, of.prompt_tokens)}});
    }
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    std::printf("%s\n", out.dump(2, ' ', false, kReplace).c_str());
    return;
  }
  std::printf("%" PRIu64
              " picks, %.1f %% of their tokens believed cached (%.1f %% with one cache "
              "for all), busiest endpoint %.1f %%\n\n",
              all.picks, 100 * hits, 100 * trace.bound_hit_rate, 100 * share(busiest, all.picks));
  Table table({"NAME"});
  for (const char* head : {"PICKS", "SHARE", "HITS"}) table.head(head, Table::kRight);
  const auto percent = [](double of) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f%%", 100 * of);
    return std::string(text);
  };
  for (const auto& [name, of] : outcome.endpoints) {
    table.row({tools::printable(name), std::to_string(of.picks),
               percent(share(of.picks, all.picks)),
               percent(share(of.match_tokens, of.prompt_tokens))});
  }
  table.print();
  for (const auto& [words, count] : outcome.refused)
    std::printf("%" PRIu64 " times: %s\n", count, words.c_str());
  if (outcome.late != 0)
    std::printf("%" PRIu64 " picks began 100 ms or more after their time: lower --speed\n",
                outcome.late);
}

}  // namespace

Run make_replay(CLI::App& app, const Common& common) {
  auto options = std::make_shared<Replay>();
  app.add_option("TRACE", options->trace,
                 "Requests, a line each: of pickctl record, or a Mooncake trace")
      ->required();
  app.add_option("--model", options->model, "Their model; default: none, for endpoints of any");
  app.add_option("--speed", options->speed, "So many times as quick as they came")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--requests", options->requests, "The first so many; 0: all")
      ->capture_default_str();
  app.add_option("--prefill-us-per-token", options->prefill_us_per_token,
                 "Until the first token: so long for each token that is not cached")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--itl-ms", options->itl_ms, "Then so long for each token of the answer")
      ->check(CLI::Range(0.0, 1e5))
      ->capture_default_str();
  app.footer(
      "They are real picks: a daemon that serves counts and remembers them. Try a policy "
      "without a daemon with pickd-sim --trace TRACE.");
  return [options, &common] {
    const bench::Trace trace = bench::read_trace(options->trace);
    struct sigaction action {};
    action.sa_handler = [](int) { g_ended = 1; };
    for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
    Player player(common.socket, *options);
    print(common, trace, player.play(trace));
    return 0;
  };
}

}  // namespace pickd::ctl

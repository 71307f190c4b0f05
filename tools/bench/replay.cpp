// pickd-bench replay: a Mooncake trace through a running daemon, over the rings, in trace time.
//
// Each request is picked at its arrival and reported at its end. Traces say how long an answer is,
// not how long it took: first token after the uncached prefill, end after the output, at rates that
// are options. Hits are counted from the outside, against caches of our own without a limit, not
// from what the daemon believes.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "abi/channel_layout.hpp"
#include "daemon/base/clock.hpp"
#include "tools/bench/client.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/bench/ring_probe.hpp"
#include "tools/bench/subcommands.hpp"
#include "tools/bench/trace.hpp"

namespace pickd::bench {

namespace {

struct ReplayOptions {
  std::string trace;
  std::string policy;
  std::uint32_t endpoints = 8;
  std::uint32_t keys_max = 4096;
  std::uint64_t state_mib = 256;
  double prefill_us_per_token = 100;
  double itl_ms = 20;
  bool json = false;
};

struct Event {
  double at_s;
  pickd_report_kind kind;
  pickd_ticket ticket;
  std::uint32_t input_tokens;
  std::uint32_t cached_tokens;
  std::uint32_t output_tokens;
  bool operator>(const Event& other) const { return at_s > other.at_s; }
};

struct Figures {
  std::uint64_t hit_tokens = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t pick_ns_total = 0;
  tools::Samples pick_ns;
  tools::Samples hash_ns;
  tools::Samples ring_ns;
  std::unordered_map<std::string, std::uint64_t> picks_of;
};

class Replay {
 public:
  Replay(const ReplayOptions& options, const Trace& trace)
      : options_(options), trace_(trace), daemon_(daemon_options(options)) {
    client_ = open_client(daemon_.socket(), options.keys_max, PICKD_OPEN_BUSY_POLL);
  }

  void run(RingProbe& probe, Figures& figures) {
    constexpr std::size_t kRequestsPerProbe = 512;
    ResultHandle result(pickd_result_new());
    for (std::size_t at = 0; at < trace_.requests.size(); ++at) {
      if (at % kRequestsPerProbe == 0) {
        show_progress(at);
        measure_ring(probe, at, figures);
      }
      report_until(trace_.requests[at].arrival_s);
      pick(trace_.requests[at], result.get(), figures);
    }
    report_until(1e300);
    show_progress(trace_.requests.size());
  }

 private:
  static DaemonOptions daemon_options(const ReplayOptions& options) {
    DaemonOptions daemon;
    daemon.profile = options.policy;
    daemon.endpoints = options.endpoints;
    daemon.keys_max = options.keys_max;
    daemon.state_mib = options.state_mib;
    daemon.capacity_tokens = 0;
    daemon.busy_poll = true;
    daemon.virtual_clock = true;
    return daemon;
  }

  void set_time(double at_s) {
    constexpr std::uint64_t kFirstTick = 2;
    const auto tick = kFirstTick + static_cast<std::uint64_t>(at_s * 1e9 / abi::kTickNs);
    if (tick <= tick_) return;
    tick_ = tick;
    daemon_.control().set_clock(tick, false);
  }

  void report_until(double at_s) {
    while (!events_.empty() && events_.top().at_s <= at_s) {
      const Event event = events_.top();
      events_.pop();
      set_time(event.at_s);
      pickd_report_info report = PICKD_REPORT_INIT;
      report.ticket = event.ticket;
      report.kind = event.kind;
      report.prompt_tokens = event.input_tokens;
      report.cached_tokens = event.cached_tokens;
      report.output_tokens = event.output_tokens;
      check(pickd_report(client_.get(), &report, PICKD_NO_DEADLINE), "report");
    }
    if (at_s < 1e300) set_time(at_s);
  }

  void pick(const TraceRequest& trace_request, pickd_result* result, Figures& figures) {
    make_prompt(trace_request, tokens_);
    pickd_request request = PICKD_REQUEST_INIT;
    request.model = pickd_string("replay");
    request.token_ids = tokens_.data();
    request.token_count = tokens_.size();
    const std::uint64_t from_ns = base::monotonic_ns();
    check(pickd_pick(client_.get(), &request, PICKD_NO_DEADLINE, result), "pick");
    const std::uint64_t took_ns = base::monotonic_ns() - from_ns;
    figures.pick_ns_total += took_ns;
    figures.pick_ns.add(static_cast<double>(took_ns));
    figures.hash_ns.add(static_cast<double>(pickd_result_hash_ns(result)));

    const std::string name = pickd_result_name(result, 0);
    ++figures.picks_of[name];
    const std::uint32_t cached = serve(caches_[name], trace_request);
    figures.hit_tokens += cached;
    const double first_s = trace_request.arrival_s + (trace_request.input_tokens - cached) *
                                                         options_.prefill_us_per_token * 1e-6;
    const double end_s = first_s + trace_request.output_tokens * options_.itl_ms * 1e-3;
    const pickd_ticket ticket = pickd_result_ticket(result);
    events_.push(
        {first_s, PICKD_REPORT_FIRST_TOKEN, ticket, PICKD_UNKNOWN, PICKD_UNKNOWN, PICKD_UNKNOWN});
    events_.push({end_s, PICKD_REPORT_DONE, ticket, trace_request.input_tokens, cached,
                  trace_request.output_tokens});
  }

  // What the engine has of the prompt already; it holds all of it afterwards.
  static std::uint32_t serve(std::unordered_set<std::uint64_t>& cache,
                             const TraceRequest& request) {
    std::size_t matched = 0;
    while (matched < request.block_ids.size() && cache.contains(request.block_ids[matched]))
      ++matched;
    cache.insert(request.block_ids.begin(), request.block_ids.end());
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(matched * kTraceBlockTokens, request.input_tokens));
  }

  void measure_ring(RingProbe& probe, std::size_t at, Figures& figures) {
    constexpr std::size_t kRoundTrips = 400;
    daemon_.rest();
    // Records of the sizes that are sent around here, so that the mix is that of the trace.
    const std::size_t step = std::max<std::size_t>(1, trace_.requests.size() / 8);
    for (std::size_t size = 0; size < 8; ++size) {
      const TraceRequest& request = trace_.requests[(at + size * step) % trace_.requests.size()];
      const std::uint32_t block_tokens = daemon_.control().state().block_tokens();
      const std::size_t keys = std::min<std::size_t>(
          (request.input_tokens + block_tokens - 1) / block_tokens, options_.keys_max);
      probe.run(abi::ring_units_bytes(sizeof(abi::PickRecord) + keys * sizeof(std::uint64_t)),
                abi::kLinePairBytes, kRoundTrips / 8, figures.ring_ns);
    }
    daemon_.go_on();
  }

  void show_progress(std::size_t done) const {
    if (::isatty(STDERR_FILENO) == 0) return;
    std::fprintf(stderr, "\rreplayed %zu of %zu requests%s", done, trace_.requests.size(),
                 done == trace_.requests.size() ? "\n" : "");
  }

  const ReplayOptions& options_;
  const Trace& trace_;
  DaemonProcess daemon_;
  Client client_;
  std::uint64_t tick_ = 0;
  std::vector<std::uint32_t> tokens_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::unordered_map<std::string, std::unordered_set<std::uint64_t>> caches_;
};

void print_figures(const ReplayOptions& options, const Trace& trace, const Figures& figures) {
  const double hit_rate =
      static_cast<double>(figures.hit_tokens) / static_cast<double>(trace.input_tokens);
  const double picks_per_s =
      static_cast<double>(trace.requests.size()) * 1e9 / static_cast<double>(figures.pick_ns_total);
  std::uint64_t busiest = 0;
  for (const auto& [name, picks] : figures.picks_of) busiest = std::max(busiest, picks);
  const double busiest_share =
      static_cast<double>(busiest) / static_cast<double>(trace.requests.size());
  const double pick_p50 = figures.pick_ns.percentile(0.5);
  const double hash_p50 = figures.hash_ns.percentile(0.5);
  const double ring_p50 = figures.ring_ns.percentile(0.5);
  if (options.json) {
    nlohmann::ordered_json out;
    out["trace"] = options.trace;
    out["policy"] = options.policy.empty() ? "default" : options.policy;
    out["endpoints"] = options.endpoints;
    out["requests"] = trace.requests.size();
    out["hit_rate"] = hit_rate;
    out["bound_hit_rate"] = trace.bound_hit_rate;
    out["busiest_share"] = busiest_share;
    out["picks_per_s"] = picks_per_s;
    out["pick_p50_ns"] = pick_p50;
    out["pick_p99_ns"] = figures.pick_ns.percentile(0.99);
    out["hash_p50_ns"] = hash_p50;
    out["ring_p50_ns"] = ring_p50;
    out["ring_p99_ns"] = figures.ring_ns.percentile(0.99);
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("%-34s %zu to %u endpoints, policy %s\n", "requests", trace.requests.size(),
              options.endpoints, options.policy.empty() ? "default" : options.policy.c_str());
  std::printf("%-34s %.3f of a bound of %.3f (one infinite cache)\n", "token hit rate", hit_rate,
              trace.bound_hit_rate);
  std::printf("%-34s %.3f (even: %.3f)\n", "share of the busiest endpoint", busiest_share,
              1.0 / options.endpoints);
  std::printf("%-34s %.0f\n", "picks per second, one at a time", picks_per_s);
  std::printf("%-34s p50 %.0f ns, p99 %.0f ns, hashing included\n", "pick", pick_p50,
              figures.pick_ns.percentile(0.99));
  std::printf("%-34s p50 %.0f ns\n", "hashing the prompt", hash_p50);
  std::printf("%-34s p50 %.0f ns, p99 %.0f ns, same record sizes, same run\n",
              "bare ring round trip", ring_p50, figures.ring_ns.percentile(0.99));
  std::printf("%-34s %.2f\n", "pick / (ring + hashing), p50", pick_p50 / (ring_p50 + hash_p50));
}

}  // namespace

void add_replay(CLI::App& app) {
  const auto options = std::make_shared<ReplayOptions>();
  app.add_option("--trace", options->trace, "Mooncake trace, one JSON object a line")->required();
  app.add_option("--policy", options->policy,
                 "Scheduling profile by name; default: the daemon's default");
  app.add_option("--endpoints", options->endpoints, "Endpoints")
      ->check(CLI::Range(1, 4095))
      ->capture_default_str();
  app.add_option("--keys-max", options->keys_max, "Longest prompt in blocks")
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  app.add_option("--state-mib", options->state_mib, "Size of the daemon's state")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str();
  app.add_option("--prefill-us-per-token", options->prefill_us_per_token,
                 "How long an engine prefills an uncached token")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--itl-ms", options->itl_ms, "Time between output tokens")
      ->check(CLI::Range(0.0, 1e5))
      ->capture_default_str();
  app.add_flag("--json", options->json, "Print one JSON object");
  app.callback([options] {
    const Trace trace = read_trace(options->trace);
    RingProbe probe;
    Figures figures;
    Replay(*options, trace).run(probe, figures);
    print_figures(*options, trace, figures);
  });
}

}  // namespace pickd::bench

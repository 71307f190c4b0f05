// pickd-bench pick: the round trip of one pick at a time, beside the bare ring and the hashing of
// the same prompt, taken in turns in one run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "abi/channel_layout.hpp"
#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "tools/bench/client.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/bench/open_loop.hpp"
#include "tools/bench/ring_probe.hpp"
#include "tools/bench/subcommands.hpp"

namespace pickd::bench {

namespace {

struct PickOptions {
  std::uint32_t endpoints = 16;
  std::uint32_t prompt_tokens = 4000;
  std::uint32_t prompts = 64;  // different prompts, taken in turn
  std::uint32_t rounds = 40;
  std::uint32_t picks = 2000;  // a round
  std::string policy;
  bool json = false;
};

std::string make_text(std::uint32_t tokens, std::uint64_t seed) {
  base::Random random(seed);
  std::string text(static_cast<std::size_t>(tokens) * abi::kBytesPerToken, ' ');
  for (char& letter : text) letter = static_cast<char>('a' + random.below(26));
  return text;
}

struct Figures {
  tools::Samples pick_ns;
  tools::Samples hash_ns;
  tools::Samples ring_ns;
  std::size_t record_bytes = 0;
};

void run_round(const PickOptions& options, const std::vector<std::string>& prompts,
               pickd_client* client, pickd_result* result, Figures& figures) {
  constexpr std::uint32_t kWarmUp = 50;
  for (std::uint32_t at = 0; at < options.picks + kWarmUp; ++at) {
    const std::string& text = prompts[at % prompts.size()];
    const pickd_slice slice{text.data(), text.size()};
    pickd_request request = PICKD_REQUEST_INIT;
    request.model = pickd_string("bench");
    request.text = &slice;
    request.text_count = 1;
    const std::uint64_t from_ns = base::monotonic_ns();
    check(pickd_pick(client, &request, PICKD_NO_DEADLINE, result), "pick");
    const std::uint64_t to_ns = base::monotonic_ns();
    if (at >= kWarmUp) {
      figures.pick_ns.add(static_cast<double>(to_ns - from_ns));
      figures.hash_ns.add(static_cast<double>(pickd_result_hash_ns(result)));
    }
    pickd_report_info report = PICKD_REPORT_INIT;
    report.ticket = pickd_result_ticket(result);
    report.kind = PICKD_REPORT_DONE;
    check(pickd_report(client, &report, PICKD_NO_DEADLINE), "report");
  }
}

void print_figures(const PickOptions& options, const Figures& figures) {
  const double pick_p50 = figures.pick_ns.percentile(0.5);
  const double hash_p50 = figures.hash_ns.percentile(0.5);
  const double ring_p50 = figures.ring_ns.percentile(0.5);
  const double ratio = pick_p50 / (ring_p50 + hash_p50);
  if (options.json) {
    nlohmann::ordered_json out;
    out["endpoints"] = options.endpoints;
    out["prompt_tokens"] = options.prompt_tokens;
    out["record_bytes"] = figures.record_bytes;
    out["pick_p50_ns"] = pick_p50;
    out["pick_p99_ns"] = figures.pick_ns.percentile(0.99);
    out["pick_p999_ns"] = figures.pick_ns.percentile(0.999);
    out["hash_p50_ns"] = hash_p50;
    out["ring_p50_ns"] = ring_p50;
    out["ring_p99_ns"] = figures.ring_ns.percentile(0.99);
    out["ratio_p50"] = ratio;
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("%u endpoints, prompt of %u tokens as text, record of %zu bytes, daemon awake\n",
              options.endpoints, options.prompt_tokens, figures.record_bytes);
  std::printf("%-28s p50 %6.0f ns   p99 %6.0f ns   p99.9 %6.0f ns\n", "pick, hashing included",
              pick_p50, figures.pick_ns.percentile(0.99), figures.pick_ns.percentile(0.999));
  std::printf("%-28s p50 %6.0f ns\n", "hashing", hash_p50);
  std::printf("%-28s p50 %6.0f ns   p99 %6.0f ns\n", "bare ring, same record", ring_p50,
              figures.ring_ns.percentile(0.99));
  std::printf("%-28s %.2f (at most 4 wanted)\n", "pick / (ring + hashing)", ratio);
}

void run_pick(const PickOptions& options) {
  RingProbe probe;
  DaemonOptions daemon_options;
  daemon_options.profile = options.policy;
  daemon_options.endpoints = options.endpoints;
  daemon_options.keys_max = 4096;
  daemon_options.spin_us = 1000;
  DaemonProcess daemon(daemon_options);
  const Client client = open_client(daemon.socket(), 4096, PICKD_OPEN_BUSY_POLL);
  const ResultHandle result(pickd_result_new());
  std::vector<std::string> prompts;
  for (std::uint32_t at = 0; at < options.prompts; ++at)
    prompts.push_back(make_text(options.prompt_tokens, at));
  Figures figures;
  const std::uint32_t block_tokens = daemon.control().state().block_tokens();
  const std::size_t keys = (options.prompt_tokens + block_tokens - 1) / block_tokens;
  figures.record_bytes =
      abi::ring_units_bytes(sizeof(abi::PickRecord) + keys * sizeof(std::uint64_t));
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    daemon.wait_until_asleep();
    probe.run(figures.record_bytes, options.picks, figures.ring_ns);
    run_round(options, prompts, client.get(), result.get(), figures);
  }
  print_figures(options, figures);
}

}  // namespace

void add_pick(CLI::App& app) {
  const auto options = std::make_shared<PickOptions>();
  app.add_option("--endpoints", options->endpoints, "Endpoints")
      ->check(CLI::Range(1, 4095))
      ->capture_default_str();
  app.add_option("--prompt-tokens", options->prompt_tokens,
                 "Tokens of a prompt, four bytes of text each")
      ->check(CLI::Range(1, 262144))
      ->capture_default_str();
  app.add_option("--prompts", options->prompts, "Different prompts, in turn")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--rounds", options->rounds, "Turns of ring and picks")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--picks", options->picks, "Picks a round")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--policy", options->policy, "Scheduling profile by name");
  app.add_flag("--json", options->json, "Print one JSON object");
  const auto loop = std::make_shared<OpenLoopOptions>();
  app.add_option("--rate", loop->rate,
                 "Open loop: so many picks a second in all, timed from the intended time; --rounds "
                 "and --picks are not used")
      ->check(CLI::PositiveNumber);
  app.add_option("--clients", loop->clients, "Open loop: clients, a thread each")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--hogs", loop->hogs, "Open loop: processes that keep a core busy meanwhile")
      ->check(CLI::Range(0, 256));
  app.add_option("--wait", loop->waits, "Open loop: how to wait; without it all three, in turns")
      ->check(CLI::IsMember({"block", "adaptive", "spin"}));
  app.add_option("--slices", loop->slices, "Open loop: turns of every way of waiting")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--slice-seconds", loop->slice_s, "Open loop: length of a turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.callback([options, loop] {
    if (loop->rate == 0) return run_pick(*options);
    loop->endpoints = options->endpoints;
    loop->prompt_tokens = options->prompt_tokens;
    loop->json = options->json;
    run_open_loop(*loop);
  });
}

}  // namespace pickd::bench

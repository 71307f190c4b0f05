// pickd-bench pick: the round trip of one pick at a time and the rate of many at once, beside the
// bare ring, other ways between two processes, the hashing and the daemon's work alone, taken in
// turns in one run.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <string>

#include "abi/channel_layout.hpp"
#include "daemon/base/clock.hpp"
#include "libclient/pick_steps.hpp"
#include "libclient/prompt_keys.hpp"
#include "tools/bench/client.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/bench/echo_probes.hpp"
#include "tools/bench/pick_figures.hpp"
#include "tools/bench/pipelined.hpp"
#include "tools/bench/prompt_text.hpp"
#include "tools/bench/ring_probe.hpp"
#include "tools/bench/subcommands.hpp"
#include "tools/bench/waiting.hpp"
#include "tools/bench/worker_probe.hpp"

namespace pickd::bench {

namespace {

struct PickOptions {
  std::uint32_t endpoints = 16;
  std::uint32_t prompt_tokens = 4000;
  std::uint32_t prompts = 64;  // different prompts, taken in turn
  std::uint32_t rounds = 40;
  std::uint32_t picks = 2000;  // a round
  double pipelined_slice_s = 0.2;
  std::string policy;
  bool json = false;
};

constexpr std::array<std::uint32_t, 7> kHashedTokens = {64, 256, 1024, 4096, 16384, 65536, 131072};
constexpr std::uint32_t kBatchesShare = 64;  // of a round's picks: batches of work in this process

struct Echo {
  std::unique_ptr<EchoProbe> probe;
  tools::Samples* samples;
};

void run_round(const PickOptions& options, const std::vector<std::string>& prompts,
               pickd_client* client, pickd_result* result, PickFigures& figures) {
  constexpr std::uint32_t kWarmUp = 50;
  for (std::uint32_t at = 0; at < options.picks + kWarmUp; ++at) {
    const std::string& text = prompts[at % prompts.size()];
    const pickd_slice slice{text.data(), text.size()};
    pickd_request request = PICKD_REQUEST_INIT;
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

// A clock at the borders of the library's own steps.
struct Stamps {
  std::uint64_t published_ns = 0;
  std::uint64_t copied_ns = 0;
  void published() { published_ns = base::monotonic_ns(); }
  void copied() { copied_ns = base::monotonic_ns(); }
};

// What a look at the clock takes.
double clock_cost_ns() {
  tools::Samples samples;
  for (int at = 0; at < 1000; ++at) {
    const std::uint64_t from_ns = base::monotonic_ns();
    for (int look = 0; look < 8; ++look) static_cast<void>(base::monotonic_ns());
    samples.add(static_cast<double>(base::monotonic_ns() - from_ns) / 9);
  }
  return samples.percentile(0.5);
}

// The same picks once more, by the library's own steps: what it does itself before the daemon can
// see the submission and after the answer is in private memory, without the hashing and without
// what the stamps take; and what lies between.
void run_stamped_round(const PickOptions& options, const std::vector<std::string>& prompts,
                       pickd_client* client, pickd_result* result, PickFigures& figures) {
  const double clock_ns = clock_cost_ns();
  const client::Deadline never = client::Deadline::never();
  for (std::uint32_t at = 0; at < options.picks / 2; ++at) {
    const std::string& text = prompts[at % prompts.size()];
    const pickd_slice slice{text.data(), text.size()};
    pickd_request request = PICKD_REQUEST_INIT;
    request.text = &slice;
    request.text_count = 1;
    Stamps stamps;
    const std::uint64_t from_ns = base::monotonic_ns();
    client::PickRequest checked;
    check(checked.read(&request, client->error), "request");
    check(client::pick_by_daemon(*client, checked, never, *result, stamps), "pick");
    const std::uint64_t to_ns = base::monotonic_ns();
    const std::uint64_t own_ns = stamps.published_ns - from_ns + to_ns - stamps.copied_ns;
    figures.library_ns.add(static_cast<double>(own_ns - pickd_result_hash_ns(result)) -
                           2 * clock_ns);
    // The daemon works while the first of these looks at the clock ends; the bare ring has one too.
    figures.wait_ns.add(static_cast<double>(stamps.copied_ns - stamps.published_ns));
    pickd_report_info report = PICKD_REPORT_INIT;
    report.ticket = pickd_result_ticket(result);
    report.kind = PICKD_REPORT_DONE;
    check(pickd_report(client, &report, PICKD_NO_DEADLINE), "report");
  }
  figures.clock_ns.add(clock_ns);
}

// One turn of every length, hashed as libpickd does it.
void run_hashing(const std::string& text, std::vector<HashCost>& costs) {
  const abi::KeyAlgorithm algorithm{1, abi::KeyKind::kText, 1, 0, 64 * abi::kBytesPerToken};
  const std::vector<std::uint8_t> secret(abi::kHashSecretBytes, 0x5A);
  const abi::KeyHasher hasher(secret.data());
  std::vector<std::uint64_t> keys(abi::kKeysMax);
  for (HashCost& cost : costs) {
    const pickd_slice slice{text.data(), std::size_t{cost.tokens} * abi::kBytesPerToken};
    client::Prompt prompt;
    prompt.segments = &slice;
    prompt.segment_count = 1;
    prompt.bytes = slice.size;
    const auto count = static_cast<std::uint32_t>(client::count_keys(prompt, algorithm));
    for (int turn = 0; turn < 5; ++turn) {
      const std::uint64_t from_ns = base::monotonic_ns();
      client::hash_prompt(hasher, algorithm, keys[0], prompt, count, keys.data());
      cost.ns.add(static_cast<double>(base::monotonic_ns() - from_ns));
    }
  }
}

void run_echoes(const PickOptions& options, const std::vector<Echo>& echoes,
                const PickFigures& figures) {
  // Each costs tens of microseconds where a pick costs a few.
  const std::uint32_t turns = options.picks / 20 + 1;
  for (const Echo& echo : echoes) {
    if (echo.probe == nullptr) continue;
    echo.probe->run(figures.record_bytes, figures.answer_bytes, turns, *echo.samples);
  }
}

void run_pick(const PickOptions& options) {
  PickFigures figures;
  // They fork, so before everything that starts a thread.
  RingProbe ring;
  std::vector<Echo> echoes;
  echoes.push_back({make_eventfd_probe(), &figures.eventfd_ns});
  echoes.push_back({make_unix_probe(), &figures.unix_ns});
  echoes.push_back({make_grpc_probe(), &figures.grpc_ns});

  DaemonOptions daemon_options;
  daemon_options.profile = options.policy;
  daemon_options.endpoints = options.endpoints;
  daemon_options.keys_max = 4096;
  daemon_options.busy_poll = true;
  DaemonProcess daemon(daemon_options);
  const Client client = open_client(daemon.socket(), 4096, PICKD_OPEN_BUSY_POLL);
  const ResultHandle result(pickd_result_new());
  std::vector<std::string> prompts;
  for (std::uint32_t at = 0; at < options.prompts; ++at)
    prompts.push_back(make_prompt_text(options.prompt_tokens, at));

  PipelinedOptions pipelined_options;
  pipelined_options.endpoints = options.endpoints;
  pipelined_options.policy = options.policy;
  pipelined_options.slice_s = options.pipelined_slice_s;
  Pipelined pipelined(pipelined_options);
  WorkerProbe pick_work(
      {options.endpoints, options.prompts, options.prompt_tokens, options.policy});
  WorkerProbe pipelined_work({options.endpoints, pipelined_options.prompts,
                              pipelined_options.prompt_tokens, options.policy});

  figures.endpoints = options.endpoints;
  figures.prompt_tokens = options.prompt_tokens;
  figures.record_bytes = abi::ring_units_bytes(pick_work.record_bytes());
  figures.answer_bytes = abi::ring_units_bytes(pick_work.answer_bytes());
  figures.outstanding = pipelined_options.outstanding;
  figures.pipelined_tokens = pipelined_options.prompt_tokens;
  figures.pipelined_prompts = pipelined_options.prompts;
  for (const std::uint32_t tokens : kHashedTokens) figures.hash_costs.push_back({tokens, {}});
  const std::string longest = make_prompt_text(kHashedTokens.back(), 0);

  tools::Samples unused;
  daemon.rest();
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    ring.run(figures.record_bytes, figures.answer_bytes, options.picks, figures.ring_ns);
    daemon.go_on();
    run_round(options, prompts, client.get(), result.get(), figures);
    run_stamped_round(options, prompts, client.get(), result.get(), figures);
    daemon.rest();
    pick_work.run(options.picks / kBatchesShare + 1, figures.daemon_ns, unused);
    pipelined_work.run(options.picks / kBatchesShare + 1, unused, figures.worker_ns);
    pipelined.run();
    run_hashing(longest, figures.hash_costs);
    run_echoes(options, echoes, figures);
  }
  figures.picks_s = pipelined.picks_s();
  figures.worker_core_share = pipelined.worker_share();
  figures.client_core_share = pipelined.client_share();
  if (options.json)
    print_json(figures);
  else
    print_table(figures);
}

void add_waiting(CLI::App& app, WaitingOptions& options) {
  app.add_flag("--standard", options.standard,
               "Ways of waiting at two rates with 0, 1, 2 and 4 hogs: one table");
  app.add_option("--rate", options.rate,
                 "Open loop: so many picks a second in all, timed from the intended time; --rounds "
                 "and --picks are not used")
      ->check(CLI::PositiveNumber);
  app.add_option("--clients", options.clients, "Open loop: clients, a thread each")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--hogs", options.hogs, "Open loop: processes that keep a core busy meanwhile")
      ->check(CLI::Range(0, 256));
  app.add_option("--wait", options.waits, "Open loop: how to wait; without it all three, in turns")
      ->check(CLI::IsMember({"block", "default", "spin"}));
  app.add_option("--slices", options.slices, "Open loop: turns of every way of waiting")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--slice-seconds", options.slice_s, "Open loop: length of a turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
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
  app.add_option("--pipelined-seconds", options->pipelined_slice_s,
                 "Length of a round's turn of pipelined picks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--policy", options->policy, "Scheduling profile by name");
  app.add_flag("--json", options->json, "Print one JSON object");
  const auto waiting = std::make_shared<WaitingOptions>();
  add_waiting(app, *waiting);
  app.callback([options, waiting] {
    if (waiting->rate == 0 && !waiting->standard) return run_pick(*options);
    waiting->endpoints = options->endpoints;
    waiting->json = options->json;
    if (waiting->standard) return run_waiting_standard(*waiting);
    waiting->prompt_tokens = options->prompt_tokens;
    run_waiting(*waiting);
  });
}

}  // namespace pickd::bench

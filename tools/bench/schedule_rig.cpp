#include "tools/bench/schedule_rig.hpp"

#include <algorithm>
#include <bitset>
#include <limits>
#include <new>
#include <stdexcept>

#include "daemon/base/clock.hpp"
#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/endpoints/topology_store.hpp"
#include "daemon/latency/learner.hpp"
#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/pick/gather.hpp"
#include "daemon/pick/pick_core.hpp"
#include "daemon/pick/predictions.hpp"

namespace pickd::bench {

namespace {

constexpr const char* kModel = "llama-3.1-70b-instruct";
constexpr std::uint32_t kBlockTokens = 64;
constexpr std::uint64_t kLines = 1 << 18;  // 16 MiB
constexpr std::uint32_t kSlots = 1 << 13;
constexpr std::uint32_t kConversations = 256;
constexpr std::uint32_t kHolders = 3;  // endpoints that hold a conversation, each to another depth
constexpr std::uint32_t kWarmUpPicks = 200;
constexpr std::uint32_t kUid = 1000;
constexpr std::uint32_t kTeachEvery = 1000;

struct FreeWords {
  void operator()(abi::Word* words) const { ::operator delete (words, std::align_val_t{64}); }
};

std::unique_ptr<abi::Word, FreeWords> make_words(std::uint64_t count) {
  std::unique_ptr<abi::Word, FreeWords> words(
      static_cast<abi::Word*>(::operator new (count * sizeof(abi::Word), std::align_val_t{64})));
  for (std::uint64_t at = 0; at < count; ++at) new (words.get() + at) abi::Word(0);
  return words;
}

double quantile(std::vector<std::uint64_t>& sorted, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at]);
}

}  // namespace

struct ScheduleRig::Parts {
  explicit Parts(std::uint32_t endpoint_count)
      : ids(endpoint_count + 1),
        words(make_words(kLines * abi::kWordsPerLine)),
        records(new abi::EndpointRecord[ids]()),
        slots(new abi::Reservation[kSlots]()),
        table({words.get(), kLines, records.get(), ids, &global_horizon, 10}),
        reservations(slots.get(), kSlots, records.get()),
        flights(ids, kSlots),
        learner(ids, kSlots),
        endpoints({records.get(), ids, &high_water, 0}, topologies),
        counters(row) {
    reservations.observe(flights);
  }

  std::uint32_t ids;
  std::unique_ptr<abi::Word, FreeWords> words;
  std::unique_ptr<abi::EndpointRecord[]> records;
  std::unique_ptr<abi::Reservation[]> slots;
  abi::Word global_horizon{0};
  abi::Word high_water{1};
  abi::Word row[abi::kCountersMax]{};
  prefix::PrefixTable table;
  endpoints::Reservations reservations;
  pick::Flights flights;
  latency::Learner learner;
  endpoints::TopologyStore topologies;
  endpoints::EndpointTable endpoints;
  state::Counters counters;
  std::vector<std::vector<std::uint64_t>> conversations;
  std::uint32_t prompt_tokens = 0;
  std::uint64_t tick = 1000;
  std::uint64_t sequence = 0;
};

ScheduleRig::~ScheduleRig() = default;

ScheduleRig::ScheduleRig(std::uint32_t endpoints, std::uint32_t prompt_tokens)
    : parts_(std::make_unique<Parts>(endpoints)) {
  Parts& parts = *parts_;
  parts.prompt_tokens = prompt_tokens;
  base::Random random(7);
  std::vector<endpoints::EndpointSpec> specs;
  for (std::uint32_t at = 1; at <= endpoints; ++at) {
    endpoints::EndpointSpec spec;
    spec.name = "e" + std::to_string(at);
    spec.address = spec.name + ":8000";
    spec.models = {kModel};
    spec.waiting = random.below(8);
    spec.running = random.below(64);
    spec.kv_use_ppm = random.below(1'000'000);
    specs.push_back(std::move(spec));
  }
  if (auto added = parts.endpoints.replace(specs, "bench", parts.tick); !added)
    throw std::runtime_error(added.error().text);
  parts.tick += 10;
  const auto now = static_cast<std::uint32_t>(parts.tick);
  const std::uint32_t blocks = (prompt_tokens + kBlockTokens - 1) / kBlockTokens;
  for (std::uint32_t at = 0; at < kConversations; ++at) {
    std::vector<std::uint64_t> keys(blocks);
    std::generate(keys.begin(), keys.end(), [&random] { return random.next(); });
    for (std::uint32_t holder = 0; holder < kHolders; ++holder) {
      const std::size_t depth = random.below(blocks) + 1;
      parts.table.stamp(std::span<const std::uint64_t>(keys).first(depth),
                        random.below(endpoints) + 1, now, abi::Tier::kAssumed, now);
    }
    parts.conversations.push_back(std::move(keys));
  }
}

// With the load that is in flight now.
double ScheduleRig::measure_predictions_ns(const pick::PickRequest& request, std::uint32_t turns) {
  Parts& parts = *parts_;
  pick::Candidates candidates;
  auto subset = std::make_unique<std::bitset<abi::kEndpointIdsMax>>();
  pick::gather_candidates(request, parts.topologies.current(), parts.records.get(), *subset,
                          candidates);
  const auto uncached = candidates.column(pick::Column::kUncachedTokens);
  std::fill(uncached.begin(), uncached.end(), static_cast<float>(parts.prompt_tokens));
  const latency::Coefficients known =
      parts.learner.coefficients(static_cast<double>(request.now_ns) * 1e-9);
  const auto clock_ns = static_cast<std::uint64_t>(measure_clock_ns());
  std::vector<std::uint64_t> taken_ns;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const std::uint64_t start_ns = base::monotonic_ns();
    pick::produce_predictions({parts.flights, known, parts.records.get(), kBlockTokens, parts.tick},
                              request, candidates);
    const std::uint64_t ns = base::monotonic_ns() - start_ns;
    taken_ns.push_back(ns - std::min(clock_ns, ns));
  }
  std::sort(taken_ns.begin(), taken_ns.end());
  return quantile(taken_ns, 0.5);
}

ScheduleFigures ScheduleRig::measure(const config::SchedulingConfig& scheduling,
                                     std::uint32_t picks) {
  Parts& parts = *parts_;
  auto schedule = pick::Schedule::make(scheduling);
  if (!schedule) throw std::runtime_error(schedule.error().text);
  pick::PickCore core({parts.records.get(), &parts.table, &parts.reservations, kBlockTokens, 1,
                       abi::kKeysMax, 42, &parts.flights},
                      std::move(*schedule));
  pick::PickScratch scratch(11);
  base::Random random(13);
  const endpoints::Topology& topology = parts.topologies.current();
  const auto clock_ns = static_cast<std::uint64_t>(measure_clock_ns());
  std::vector<std::uint64_t> pick_ns;
  std::vector<std::uint64_t> remember_ns;
  pick_ns.reserve(picks);
  remember_ns.reserve(picks);
  std::vector<endpoints::Ticket> running;
  const std::size_t running_max = std::min<std::size_t>(parts.ids * 4, kSlots / 2);
  pick::PickResult result;
  for (std::uint32_t turn = 0; turn < picks + kWarmUpPicks; ++turn) {
    pick::PickRequest request;
    request.keys = parts.conversations[random.below(kConversations)];
    request.model = kModel;
    request.prompt_tokens = parts.prompt_tokens;
    request.ticket = {7, ++parts.sequence};
    request.uid = kUid;
    request.now_ns = parts.tick * abi::kTickNs + parts.sequence;
    request.stream = true;
    request.slo_ttft_ms = turn % 2 == 0 ? 500 : 5000;
    request.slo_itl_ms = turn % 2 == 0 ? 30 : 100;
    // The learner's turn, which a thread of its own has in the daemon.
    if (turn % kTeachEvery == 0) {
      parts.flights.teach(parts.learner);
      latency::Coefficients known =
          parts.learner.coefficients(static_cast<double>(request.now_ns) * 1e-9);
      // No answers are simulated; a model that is ready costs what one costs.
      for (latency::ClassCoefficients& of : known.classes) of.ttft_ready = of.itl_ready = true;
      parts.flights.publish(known);
    }
    const std::uint64_t start_ns = base::monotonic_ns();
    core.pick(request, topology, parts.tick, scratch, parts.counters, result);
    const std::uint64_t picked_ns = base::monotonic_ns();
    core.remember(request, result, parts.tick, parts.counters);
    const std::uint64_t end_ns = base::monotonic_ns();
    if (turn >= kWarmUpPicks) {
      pick_ns.push_back(picked_ns - start_ns - std::min(clock_ns, picked_ns - start_ns));
      remember_ns.push_back(end_ns - picked_ns - std::min(clock_ns, end_ns - picked_ns));
    }
    // As many in flight as a fleet has, in order of the picks.
    running.push_back(request.ticket);
    if (running.size() < running_max) continue;
    parts.reservations.end(running.front(), kUid);
    running.erase(running.begin());
  }
  pick::PickRequest request;
  request.prompt_tokens = parts.prompt_tokens;
  request.now_ns = parts.tick * abi::kTickNs + parts.sequence;
  const double predictions_p50_ns = measure_predictions_ns(request, picks);
  for (const endpoints::Ticket& ticket : running) parts.reservations.end(ticket, kUid);
  std::sort(pick_ns.begin(), pick_ns.end());
  std::sort(remember_ns.begin(), remember_ns.end());
  return {quantile(pick_ns, 0.5), quantile(pick_ns, 0.99), quantile(remember_ns, 0.5),
          predictions_p50_ns};
}

config::SchedulingConfig named_profile(const std::string& name) {
  const pick::BuiltinProfile* profile = pick::find_builtin_profile(name);
  if (profile == nullptr) throw std::runtime_error("there is no profile " + name);
  return profile->make();
}

config::SchedulingConfig without(config::SchedulingConfig scheduling, const std::string& plugin) {
  for (config::ProfileConfig& profile : scheduling.profiles) {
    std::erase_if(profile.plugins,
                  [&](const config::PluginUse& use) { return use.plugin_ref == plugin; });
  }
  return scheduling;
}

double measure_clock_ns() {
  // The least of several rows: one in which the core was taken away would make every pick free.
  constexpr int kRows = 20;
  constexpr int kReads = 500;
  double least_ns = std::numeric_limits<double>::infinity();
  for (int row = 0; row < kRows; ++row) {
    const std::uint64_t start_ns = base::monotonic_ns();
    for (int read = 0; read < kReads; ++read) {
      [[maybe_unused]] const volatile std::uint64_t now_ns = base::monotonic_ns();
    }
    least_ns = std::min(least_ns, static_cast<double>(base::monotonic_ns() - start_ns) / kReads);
  }
  return least_ns;
}

}  // namespace pickd::bench

#include "daemon/control/admin_source.hpp"

#include <chrono>

#include "daemon/base/clock.hpp"
#include "daemon/control/version.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::control {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

const char* name_of(abi::EndpointState state) {
  switch (state) {
    case abi::EndpointState::kReady: return "ready";
    case abi::EndpointState::kSuspect: return "suspect";
    case abi::EndpointState::kDown: return "down";
    case abi::EndpointState::kDraining: return "draining";
    case abi::EndpointState::kStarting:
    case abi::EndpointState::kFree: break;
  }
  return "starting";
}

const char* name_of(abi::Role role) {
  switch (role) {
    case abi::Role::kDecode: return "decode";
    case abi::Role::kPrefill: return "prefill";
    case abi::Role::kEncode: return "encode";
    case abi::Role::kBoth: break;
  }
  return "both";
}

const char* name_of(abi::Reason reason) {
  switch (reason) {
    case abi::Reason::kScore: return "score";
    case abi::Reason::kTie: return "tie";
    case abi::Reason::kPrefix: return "prefix";
    case abi::Reason::kSession: return "session";
    case abi::Reason::kOnly: return "only";
    case abi::Reason::kPolicy: return "policy";
    case abi::Reason::kFallback: return "fallback";
    case abi::Reason::kDegraded: return "degraded";
    case abi::Reason::kUnpredicted: return "unpredicted";
    case abi::Reason::kNone: break;
  }
  return "none";
}

std::optional<std::uint64_t> known(std::uint32_t value) {
  return value == abi::kUnknown32 ? std::nullopt : std::optional<std::uint64_t>(value);
}

admin::ModelFacts facts_of(const latency::Accuracy& accuracy) {
  return {accuracy.samples(),  accuracy.mape(),  accuracy.bias(),
          accuracy.coverage(), accuracy.ready(), accuracy.drifting()};
}

}  // namespace

AdminSource::AdminSource(Parts parts) : parts_(std::move(parts)) {}

admin::EndpointFacts AdminSource::endpoint_facts(const endpoints::TopologyEndpoint& endpoint,
                                                 std::uint64_t tick) {
  const abi::EndpointRecord& record = parts_.room->segment().endpoints()[endpoint.id];
  const endpoints::EndpointNote& note = parts_.notes->note(endpoint.id, endpoint.generation);
  const auto state = static_cast<abi::EndpointState>(record.state.load(kRelaxed));
  admin::EndpointFacts facts;
  facts.name = endpoint.name;
  facts.address = endpoint.address;
  facts.pool = endpoint.pool;
  facts.role = name_of(endpoint.role);
  facts.state = name_of(state);
  facts.why_not_ready = endpoints::why_not_ready(state, note);
  facts.engine = endpoint.engine.empty() ? note.engine : endpoint.engine;
  facts.models = endpoint.models;
  facts.waiting = known(record.waiting.load(kRelaxed));
  facts.running = known(record.running.load(kRelaxed));
  if (const auto ppm = known(record.kv_use_ppm.load(kRelaxed)); ppm)
    facts.kv_use = static_cast<double>(*ppm) * 1e-6;
  // The tick is also stored when somebody tells of an endpoint without a load.
  if (!note.engine.empty() || facts.waiting || facts.running || facts.kv_use) {
    const std::uint32_t ticks =
        static_cast<std::uint32_t>(tick) - record.scrape_tick.load(kRelaxed);
    facts.load_age_s = static_cast<double>(ticks) * static_cast<double>(abi::kTickNs) * 1e-9;
  }
  facts.scrape_failures = note.scrape_failures;
  facts.inflight_requests = abi::CountWord{record.inflight_requests.load(kRelaxed)}.count();
  facts.inflight_tokens = abi::CountWord{record.inflight_tokens.load(kRelaxed)}.count();
  facts.live_blocks = record.live_blocks.load(kRelaxed);
  facts.capacity_blocks = record.capacity_blocks.load(kRelaxed);
  const std::uint32_t generation = abi::LifeWord{record.life.load(kRelaxed)}.generation();
  for (std::uint32_t index = 0; index < parts_.room->worker_count(); ++index) {
    const workers::EndpointPicks picks =
        parts_.room->worker(index).figures().of(endpoint.id, generation);
    facts.picks += picks.picks;
    facts.prompt_blocks += picks.prompt_blocks;
    facts.match_blocks += picks.match_blocks;
  }
  return facts;
}

void AdminSource::add_picks(admin::Facts& facts) const {
  for (std::size_t reason = 1; reason < workers::kReasons; ++reason) {
    if (static_cast<abi::Reason>(reason) == abi::Reason::kDegraded) continue;  // the library's own
    facts.picks_by_reason.emplace_back(name_of(static_cast<abi::Reason>(reason)), 0);
  }
  for (std::uint32_t index = 0; index < parts_.room->worker_count(); ++index) {
    const workers::PickFigures& figures = parts_.room->worker(index).figures();
    facts.pick_seconds.add(figures.pick_seconds());
    facts.match_share.add(figures.match_share());
    auto at = facts.picks_by_reason.begin();
    for (std::size_t reason = 1; reason < workers::kReasons; ++reason) {
      if (static_cast<abi::Reason>(reason) == abi::Reason::kDegraded) continue;
      (at++)->second += figures.picks_by(static_cast<abi::Reason>(reason));
    }
  }
}

void AdminSource::add_latency(admin::Facts& facts) const {
  EngineRoom& room = *parts_.room;
  if (room.learner() == nullptr) return;
  std::uint16_t number = 0;
  for (const maintenance::LatencySummary& summary : room.learner()->summary()) {
    facts.classes.push_back({room.endpoint_table().latency_classes().name(number++),
                             summary.coefficients.output_tokens, facts_of(summary.accuracy.ttft),
                             facts_of(summary.accuracy.itl)});
  }
  const latency::TimesSeen& times = room.learner()->times();
  facts.ttft = times.ttft.counts(latency::kTtftSecondsShape);
  facts.predicted_ttft = times.predicted_ttft.counts(latency::kTtftSecondsShape);
  facts.ttft_ratio = times.ttft_ratio.counts(latency::kRatioShape);
  facts.itl = times.itl.counts(latency::kItlSecondsShape);
  facts.predicted_itl = times.predicted_itl.counts(latency::kItlSecondsShape);
  facts.itl_ratio = times.itl_ratio.counts(latency::kRatioShape);
}

admin::Facts AdminSource::facts() {
  EngineRoom& room = *parts_.room;
  const abi::StateHeader& header = room.segment().header();
  const maintenance::StoreSummary store = room.maintenance().summary();
  const std::uint64_t tick = room.clock().tick();
  admin::Facts facts;
  facts.version = kVersion;
  facts.pid = header.daemon_pid;
  facts.uptime_s = static_cast<double>(base::monotonic_ns() - parts_.started_ns) * 1e-9;
  facts.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  facts.started = room.origin();
  facts.profile = room.schedule().name();
  facts.reactor = parts_.reactor;
  facts.state_bytes = room.segment().bytes();
  facts.block_tokens = header.block_tokens;
  facts.ttl_s = static_cast<double>(header.ttl_ticks) * static_cast<double>(abi::kTickNs) * 1e-9;
  facts.clients = parts_.clients();
  facts.channels = parts_.channels();
  facts.workers = room.worker_count();
  facts.reservations = room.reservations().count_held();
  facts.reservations_max = header.reservation_slots;
  facts.prefix_words = store.words;
  facts.prefix_live = store.live;
  for (std::size_t at = 0; at < facts.counters.size(); ++at)
    facts.counters[at] = state::sum_counter(room.segment(), static_cast<abi::Counter>(at));
  for (const endpoints::TopologyEndpoint& endpoint : room.topologies().current().endpoints()) {
    if (endpoint.id != 0) facts.endpoints.push_back(endpoint_facts(endpoint, tick));
  }
  add_picks(facts);
  add_latency(facts);
  return facts;
}

std::vector<admin::Check> AdminSource::health() { return parts_.pulse->threads(); }

std::vector<admin::Check> AdminSource::readiness() {
  const std::size_t all = parts_.room->endpoint_table().count();
  const std::size_t ready = parts_.room->endpoint_table().count_ready();
  std::string why = std::to_string(ready) + " of " + std::to_string(all) + " endpoints are ready";
  if (all == 0)
    why =
        "there are no endpoints; give some in the configuration, by discovery or with `pickctl "
        "add`";
  if (ready == 0 && all != 0) why += "; `pickctl endpoints` says why";
  std::vector<admin::Check> checks = parts_.pulse->threads();
  checks.insert(checks.begin(), {"endpoints", ready != 0, why});
  return checks;
}

std::vector<admin::Source::RecentPick> AdminSource::recent_picks(std::size_t count) {
  std::vector<RecentPick> picks;
  const std::uint64_t now_ns = parts_.room->clock().now_ns();
  for (auto& explanation : parts_.explainer->recent(count)) {
    const std::uint64_t then_ns = explanation->pick.now_ns;
    const double age_s = now_ns > then_ns ? static_cast<double>(now_ns - then_ns) * 1e-9 : 0;
    picks.push_back({age_s, std::move(explanation)});
  }
  return picks;
}

}  // namespace pickd::control

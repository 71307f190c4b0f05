#include "daemon/endpoints/engine_watch.hpp"

#include <utility>

namespace pickd::endpoints {

namespace {

using abi::EndpointState;

constexpr std::size_t kChangesMax = 4096;
constexpr std::uint32_t kRestartsMax = 5;          // within
constexpr std::uint64_t kRestartsTicks = 20 * 60;  // a minute

EndpointState state_of(const abi::EndpointRecord& record) {
  // Partner: note_failure() of the workers, which may have made it suspect.
  return static_cast<EndpointState>(record.state.load(std::memory_order_seq_cst));
}

std::uint32_t generation_of(const abi::EndpointRecord& record) {
  return abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
}

}  // namespace

EngineWatch::EngineWatch(EndpointTable& table, TopologyStore& store, abi::EndpointRecord* records,
                         const WatchRules& rules)
    : table_(&table), store_(&store), records_(records), rules_(rules) {
  watched_.resize(abi::kEndpointIdsMax);
  restarts_.resize(abi::kEndpointIdsMax);
}

EngineWatch::Watched& EngineWatch::watched(std::uint16_t id) {
  std::unique_ptr<Watched>& watched = watched_[id];
  const abi::EndpointRecord& record = records_[id];
  const std::uint32_t generation = generation_of(record);
  if (watched != nullptr && watched->generation == generation) return *watched;
  // Another engine, or the first look: what it is now is the word of who made this generation, or
  // of the daemon before. Failures that workers noted already are seen by the next turn.
  auto made = std::make_unique<Watched>();
  made->generation = generation;
  made->state = state_of(record);
  const bool draining = made->state == EndpointState::kDraining;
  HealthRules rules = rules_.health;
  const TopologyEndpoint* endpoint = store_->current().find(id);
  if (rules_.scraped && endpoint != nullptr) rules.scraped = rules_.scraped(*endpoint);
  made->health = Health(rules, draining ? EndpointState::kReady : made->state);
  watched = std::move(made);
  return *watched;
}

void EngineWatch::scrape_sent(std::uint16_t id) {
  watched(id).own_before = own_inflight(records_[id]);
}

LoadNotes EngineWatch::scrape_ok(std::uint16_t id, const EngineFacts& facts, std::uint64_t tick) {
  const TopologyEndpoint* endpoint = store_->current().find(id);
  if (endpoint == nullptr) return {};  // removed while the scrape was under way
  const std::uint64_t capacity_told = endpoint->capacity_blocks;
  Watched* one = &watched(id);
  LoadNotes notes = tell_load(records_[id], one->memory, facts, one->own_before, capacity_told,
                              tick, rules_.load);
  if (notes.restarted && restarts_too_often(id, tick)) {
    one->memory = {};
    records_[id].engine_start_ms.store(0, std::memory_order_relaxed);
    notes = tell_load(records_[id], one->memory, facts, one->own_before, capacity_told, tick,
                      rules_.load);
    notes.unsteady = true;
  }
  if (notes.restarted) {
    // Its cache is empty, and what we had in flight there is lost.
    const std::string name = endpoint->name;
    static_cast<void>(table_->reset(name, tick));
    one = &watched(id);
    one->own_before = 0;
    notes = tell_load(records_[id], one->memory, facts, 0, capacity_told, tick, rules_.load);
    notes.restarted = true;
  }
  one->health.answered(tick);
  settle(id, *one, tick);
  return notes;
}

bool EngineWatch::restarts_too_often(std::uint16_t id, std::uint64_t tick) {
  Restarts& restarts = restarts_[id];
  if (tick - restarts.since_tick >= kRestartsTicks) restarts = {tick, 0};
  if (restarts.count < kRestartsMax) {
    ++restarts.count;
    return false;
  }
  restarts.since_tick = tick;
  return true;
}

void EngineWatch::scrape_unreadable(std::uint16_t id, std::uint64_t tick) {
  if (store_->current().find(id) == nullptr) return;
  Watched& one = watched(id);
  one.health.answered(tick);
  settle(id, one, tick);
}

void EngineWatch::scrape_failed(std::uint16_t id, std::uint64_t tick) {
  if (store_->current().find(id) == nullptr) return;
  Watched& one = watched(id);
  one.memory.away = true;
  one.health.not_answered();
  settle(id, one, tick);
}

std::uint64_t EngineWatch::probe_tick(std::uint16_t id, std::uint64_t last_tick,
                                      std::uint32_t interval_ticks) {
  return watched(id).health.probe_tick(last_tick, interval_ticks);
}

std::uint32_t EngineWatch::turn(std::uint64_t tick) {
  std::uint32_t changed = 0;
  for (const TopologyEndpoint& endpoint : store_->current().endpoints())
    changed += settle(endpoint.id, watched(endpoint.id), tick) ? 1 : 0;
  return changed;
}

bool EngineWatch::settle(std::uint16_t id, Watched& watched, std::uint64_t tick) {
  abi::EndpointRecord& record = records_[id];
  EndpointState now = state_of(record);
  while (now != EndpointState::kDraining && now != EndpointState::kFree) {
    const abi::FailureWord noted{record.failures.load(std::memory_order_seq_cst)};
    if (noted.generation() == watched.generation) {
      watched.health.served(noted.in_a_row(), noted.all() != watched.failures_seen, tick);
      watched.failures_seen = noted.all();
    }
    const EndpointState wanted = watched.health.state(tick);
    auto seen = static_cast<std::uint32_t>(now);
    const bool stored =
        wanted == now || record.state.compare_exchange_strong(
                             seen, static_cast<std::uint32_t>(wanted), std::memory_order_seq_cst);
    now = stored ? wanted : static_cast<EndpointState>(seen);
    // A worker counts a failure first and looks at the state then: either it saw the state stored
    // here and made it suspect, or its failure is seen here.
    const abi::FailureWord again{record.failures.load(std::memory_order_seq_cst)};
    if (stored &&
        (again.all() == watched.failures_seen || again.generation() != watched.generation)) {
      break;
    }
  }
  if (now == watched.state) return false;
  if (changes_.size() < kChangesMax) changes_.push_back({id, watched.state, now});
  watched.state = now;
  return true;
}

std::vector<EngineWatch::Change> EngineWatch::take_changes() { return std::exchange(changes_, {}); }

const EngineFacts* EngineWatch::facts(std::uint16_t id) const {
  const Watched* one = watched_[id].get();
  if (one == nullptr || !one->memory.seen || one->generation != generation_of(records_[id]))
    return nullptr;
  return &one->memory.last;
}

}  // namespace pickd::endpoints

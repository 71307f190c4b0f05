#include "daemon/endpoints/told_load.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/endpoints/endpoint_spec.hpp"

namespace pickd::endpoints {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
// The kernel's word of when it booted moves with corrections of the clock, and with it the start of
// a process.
constexpr double kStartToleranceMs = 2000;
// Within a few missed scrapes it hardly moves, and an engine may be back that soon.
constexpr double kStartToleranceAwayMs = 50;

std::uint64_t start_ms(const EngineFacts& facts) {
  const double ms = facts.process_start_s * 1000;
  return ms >= 1 && ms < 1e15 ? static_cast<std::uint64_t>(ms) : 0;  // 0 for NaN too
}

// Counters that never go back went back. Fewer series than before may just be a part of a page.
// False where one of them is not told.
bool went_back(double before, std::uint32_t series_before, double now, std::uint32_t series) {
  return now < before && series >= series_before;
}

bool one_page_is_restarted(const LoadMemory& memory, const EngineFacts& facts,
                           double tolerance_ms) {
  const std::vector<PageProgress>& before = memory.last.pages;
  if (!memory.seen || before.size() != facts.pages.size()) return false;
  for (std::size_t at = 0; at < before.size(); ++at) {
    const PageProgress& now = facts.pages[at];
    const double moved_ms = (now.process_start_s - before[at].process_start_s) * 1000;
    if (std::abs(moved_ms) > tolerance_ms) return true;  // not where one is not told
    if (went_back(before[at].progress, before[at].progress_series, now.progress,
                  now.progress_series)) {
      return true;
    }
  }
  return false;
}

bool is_restarted(const abi::EndpointRecord& record, const LoadMemory& memory,
                  const EngineFacts& facts) {
  const std::uint64_t before = record.engine_start_ms.load(kRelaxed);
  const std::uint64_t now = start_ms(facts);
  const double tolerance_ms = memory.away ? kStartToleranceAwayMs : kStartToleranceMs;
  if (before != 0 && now != 0 &&
      std::abs(static_cast<double>(now) - static_cast<double>(before)) > tolerance_ms) {
    return true;
  }
  if (one_page_is_restarted(memory, facts, tolerance_ms)) return true;
  return memory.seen && went_back(memory.last.progress, memory.last.progress_series, facts.progress,
                                  facts.progress_series);
}

std::uint32_t requests_told(std::uint32_t waiting, std::uint32_t running) {
  if (waiting == abi::kUnknown32 && running == abi::kUnknown32) return abi::kUnknown32;
  std::uint32_t requests = 0;
  for (const std::uint32_t count : {waiting, running})
    requests += count == abi::kUnknown32 ? 0 : count;
  return requests;
}

// A value that this scrape does not know keeps the last good one until that is stale.
std::uint32_t or_kept(std::uint32_t told, GoodValue& good, std::uint64_t tick,
                      const LoadRules& rules) {
  if (told != abi::kUnknown32) good = {told, tick};
  return tick - good.tick <= rules.stale_ticks ? good.value : abi::kUnknown32;
}

bool says_the_same(const EngineFacts& a, const EngineFacts& b) {
  const bool progress_same =
      a.progress == b.progress || (std::isnan(a.progress) && std::isnan(b.progress));
  return a.waiting == b.waiting && a.running == b.running && a.kv_use_ppm == b.kv_use_ppm &&
         progress_same;
}

bool is_frozen(LoadMemory& memory, const EngineFacts& facts, std::uint32_t own, std::uint64_t tick,
               const LoadRules& rules) {
  if (!memory.seen || own != 0 || !says_the_same(memory.last, facts)) {
    memory.same_since_tick = tick;
    return false;
  }
  const std::uint32_t told = requests_told(facts.waiting, facts.running);
  const bool busy = told != 0 && told != abi::kUnknown32;
  const std::uint64_t wait = std::uint64_t{rules.frozen_ticks} * (busy ? kBusyFrozenFactor : 1);
  return tick - memory.same_since_tick >= wait;
}

void tell_models(abi::EndpointRecord& record, const EngineFacts& facts) {
  const auto narrow = [](std::uint32_t count) {
    return std::min<std::uint32_t>(count, abi::ModelLoadWord::kUnknown);
  };
  for (std::size_t at = 0; at < abi::kModelLoadsMax; ++at) {
    abi::ModelLoadWord word;
    if (at < facts.models.size()) {
      const ModelLoad& load = facts.models[at];
      word = abi::ModelLoadWord::make(adapter_hash(load.model.data(), load.model.size()),
                                      narrow(load.waiting), narrow(load.running));
    }
    record.model_load[at].store(word.bits, kRelaxed);
  }
}

void tell_adapters(abi::EndpointRecord& record, const EngineFacts& facts) {
  if (!facts.tells_adapters) return;
  record.adapters_max.store(facts.adapters_max, kRelaxed);
  const auto store = [](abi::HalfWord* words, const std::vector<std::string>& names) {
    for (std::size_t at = 0; at < abi::kEndpointAdaptersMax; ++at) {
      words[at].store(at < names.size() ? adapter_hash(names[at].data(), names[at].size()) : 0,
                      kRelaxed);
    }
  };
  store(record.adapters_active, facts.adapters_active);
  store(record.adapters_waiting, facts.adapters_waiting);
}

// False: the engine's block size cannot be that of its cache.
bool tell_capacity(abi::EndpointRecord& record, const EngineFacts& facts, const LoadRules& rules) {
  if (facts.block_tokens == abi::kUnknown32 || facts.blocks == 0) return true;
  // The scheduler's unit (4), or a stale value: blocks x size would be far off.
  if (facts.block_tokens < abi::kBlockTokensMin || facts.block_tokens > abi::kBlockTokensMax) {
    record.capacity_blocks.store(rules.capacity_blocks_default, kRelaxed);
    return false;
  }
  const std::uint64_t tokens = facts.blocks * facts.block_tokens;
  record.capacity_blocks.store(std::max<std::uint64_t>(1, tokens / rules.block_tokens), kRelaxed);
  return true;
}

}  // namespace

std::uint32_t own_inflight(const abi::EndpointRecord& record) {
  const abi::CountWord count{record.inflight_requests.load(kRelaxed)};
  const abi::LifeWord life{record.life.load(kRelaxed)};
  if (count.generation() != life.generation()) return 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count.count(), abi::kUnknown32 - 1));
}

LoadNotes tell_load(abi::EndpointRecord& record, LoadMemory& memory, const EngineFacts& facts,
                    std::uint32_t own_before, std::uint64_t capacity_told, std::uint64_t tick,
                    const LoadRules& rules) {
  LoadNotes notes;
  notes.restarted = is_restarted(record, memory, facts);
  if (notes.restarted) return notes;
  const std::uint32_t own = std::max(own_before, own_inflight(record));
  notes.frozen = is_frozen(memory, facts, own, tick, rules);
  memory.last = facts;
  memory.seen = true;
  memory.away = false;

  std::uint32_t waiting = or_kept(facts.waiting, memory.waiting, tick, rules);
  std::uint32_t running = or_kept(facts.running, memory.running, tick, rules);
  std::uint32_t kv_use_ppm = or_kept(facts.kv_use_ppm, memory.kv_use_ppm, tick, rules);
  if (notes.frozen) {
    for (std::uint32_t* value : {&waiting, &running, &kv_use_ppm})
      *value = *value == abi::kUnknown32 ? abi::kUnknown32 : 0;
  }
  const std::uint32_t told = requests_told(waiting, running);
  if (told != abi::kUnknown32) notes.foreign = told - std::min(told, own);
  record.waiting.store(waiting, kRelaxed);
  record.running.store(running, kRelaxed);
  record.kv_use_ppm.store(kv_use_ppm, kRelaxed);
  record.foreign_requests.store(notes.foreign, kRelaxed);
  tell_models(record, notes.frozen ? EngineFacts{} : facts);
  tell_adapters(record, facts);
  if (capacity_told == 0) notes.block_odd = !tell_capacity(record, facts, rules);
  if (const std::uint64_t start = start_ms(facts); start != 0)
    record.engine_start_ms.store(start, kRelaxed);
  record.told_ticks_max.store(rules.stale_ticks, kRelaxed);
  // Last, with release: who sees this age finds at least these values. Partner: told_is_stale().
  record.scrape_tick.store(static_cast<std::uint32_t>(tick), std::memory_order_release);
  return notes;
}

}  // namespace pickd::endpoints

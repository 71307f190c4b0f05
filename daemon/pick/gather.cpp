#include "daemon/pick/gather.hpp"

#include <cerrno>

#include "daemon/prefix/horizons.hpp"

namespace pickd::pick {

namespace {

// Records are fetched so far ahead: they lie apart by more than processors foresee.
constexpr std::size_t kRecordsAhead = 12;

// The two lines of a record that picks read.
inline void fetch_ahead(const abi::EndpointRecord* records, const std::vector<std::uint16_t>& ids,
                        std::size_t at) {
  if (at + kRecordsAhead >= ids.size()) return;
  const abi::EndpointRecord& record = records[ids[at + kRecordsAhead]];
  __builtin_prefetch(&record.life);
  __builtin_prefetch(&record.text_version);
}

// Takes the endpoints in `wanted` state.
void gather_state(const std::vector<std::uint16_t>& ids, abi::EndpointState wanted,
                  const endpoints::Topology& topology, const abi::EndpointRecord* records,
                  const std::bitset<abi::kEndpointIdsMax>* subset, Candidates& candidates) {
  const endpoints::TopologyEndpoint* const endpoints = topology.endpoints().data();
  std::size_t taken = candidates.count;
  for (std::size_t next = 0; next < ids.size(); ++next) {
    const std::uint16_t id = ids[next];
    if (subset == nullptr) {
      fetch_ahead(records, ids, next);
    } else if (!subset->test(id)) {
      continue;
    }
    const abi::EndpointRecord& record = records[id];
    // Acquire; partner: the release stores of begin_generation(). A ready state shows the life word
    // of its generation or of a newer one.
    if (record.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(wanted))
      continue;
    const std::uint64_t life = record.life.load(std::memory_order_acquire);
    const endpoints::Topology::Brief& brief = topology.brief(id);
    // Another text than the topology's: replaced this moment, its address may be another. Looked at
    // after the life word: who puts another engine there writes the text before the new generation.
    // A mere reset leaves the text, and the generation read here is the one that counts.
    if (record.text_version.load(std::memory_order_acquire) != brief.text_version) continue;
    candidates.ids()[taken] = id;
    candidates.latency_classes()[taken] = brief.latency_class;
    candidates.lives()[taken] = life;
    candidates.endpoints()[taken] = endpoints + brief.at;
    ++taken;
  }
  candidates.count = taken;
}

}  // namespace

Gathered gather_candidates(const PickRequest& request, const endpoints::Topology& topology,
                           const abi::EndpointRecord* records,
                           std::bitset<abi::kEndpointIdsMax>& subset, Candidates& candidates) {
  candidates.count = 0;
  const std::vector<std::uint16_t>* ids = topology.candidates(request.model);
  if (ids == nullptr) return {-ENOENT, false};
  const std::bitset<abi::kEndpointIdsMax>* allowed = nullptr;
  if (request.has_subset) {
    subset.reset();
    for (const std::string_view text : request.subset) {
      topology.for_each_named(text, [&subset](std::uint16_t id) { subset.set(id); });
    }
    allowed = &subset;
  }
  gather_state(*ids, abi::EndpointState::kReady, topology, records, allowed, candidates);
  if (candidates.count != 0) return {0, false};
  // Nobody is ready: the least bad there is. Never the last one is given up: one that failed, or
  // was not seen yet, may serve after all, and the caller learns by trying as soon as we.
  for (const abi::EndpointState state :
       {abi::EndpointState::kSuspect, abi::EndpointState::kStarting, abi::EndpointState::kDown}) {
    gather_state(*ids, state, topology, records, allowed, candidates);
    if (candidates.count != 0) return {0, true};
  }
  return {-EHOSTUNREACH, false};
}

void limit_affinity(const PickRequest& request, std::uint64_t tick, Candidates& candidates) {
  constexpr std::uint64_t kTickMs = abi::kTickNs / 1'000'000;
  const std::uint64_t ttl_ticks = request.affinity_ttl_ms / kTickMs;
  if (request.affinity_ttl_ms == 0 || ttl_ticks > prefix::kTtlTicksMax) return;
  const auto now = static_cast<std::uint32_t>(tick) & abi::kStampMask;
  const auto limit = static_cast<std::uint32_t>(tick - ttl_ticks) & abi::kStampMask;
  for (std::size_t at = 0; at < candidates.count; ++at) {
    const abi::LifeWord life{candidates.lives()[at]};
    candidates.lives()[at] = abi::LifeWord::make(life.generation(), life.floor(),
                                                 abi::newer_stamp(life.horizon(), limit, now))
                                 .bits;
  }
}

}  // namespace pickd::pick

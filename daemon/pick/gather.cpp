#include "daemon/pick/gather.hpp"

#include <cerrno>

namespace pickd::pick {

namespace {

void take(const endpoints::TopologyEndpoint& endpoint, std::uint64_t life, Candidates& candidates) {
  const std::size_t at = candidates.count++;
  candidates.ids()[at] = endpoint.id;
  candidates.lives()[at] = life;
  candidates.endpoints()[at] = &endpoint;
}

// Takes the endpoints in `wanted` state.
void gather_state(const std::vector<std::uint16_t>& ids, abi::EndpointState wanted,
                  const endpoints::Topology& topology, const abi::EndpointRecord* records,
                  const std::bitset<abi::kEndpointIdsMax>* subset, Candidates& candidates) {
  for (const std::uint16_t id : ids) {
    if (subset != nullptr && !subset->test(id)) continue;
    const abi::EndpointRecord& record = records[id];
    // Acquire; partner: the release stores of begin_generation(). A ready state shows the life word
    // of its generation or of a newer one.
    if (record.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(wanted))
      continue;
    const std::uint64_t life = record.life.load(std::memory_order_acquire);
    const endpoints::TopologyEndpoint& endpoint = *topology.find(id);
    // Another text than the topology's: replaced this moment, its address may be another. Looked at
    // after the life word: who puts another engine there writes the text before the new generation.
    // A mere reset leaves the text, and the generation read here is the one that counts.
    if (record.text_version.load(std::memory_order_acquire) != endpoint.text_version) continue;
    take(endpoint, life, candidates);
  }
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

}  // namespace pickd::pick

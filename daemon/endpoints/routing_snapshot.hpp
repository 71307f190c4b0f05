// The routing snapshot: the topology as bytes in the state segment, in two buffers, so that a
// reader in another process, or the next daemon, always finds a whole one.
//
//   buffer: u64 bytes, then a FlatBuffer `Routing` (abi/pickd.fbs)
//   version even: buffer (version / 2) & 1 is whole; odd: the other one is being written
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/state_layout.hpp"
#include "daemon/endpoints/topology.hpp"

namespace pickd::endpoints {

struct RoutingParts {
  std::byte* buffers[2] = {nullptr, nullptr};
  std::uint64_t bytes = 0;  // of each
  abi::Word* version = nullptr;
};

// What a snapshot of these takes of a buffer.
std::uint64_t routing_bytes(const std::vector<TopologyEndpoint>& endpoints);

// Writes `topology`. False when it does not fit: the snapshot is then empty, never half of one.
bool write_routing(const RoutingParts& parts, const Topology& topology);

// The endpoints of the newest whole snapshot; nothing when there is none or its bytes are not
// sound.
std::optional<std::vector<TopologyEndpoint>> read_routing(const RoutingParts& parts);

}  // namespace pickd::endpoints

// Candidates: who may serve a request at all, before any filter of a profile.
#pragma once

#include <bitset>

#include "abi/state_layout.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/columns.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::pick {

struct Gathered {
  int status = 0;          // -ENOENT unknown model, -EHOSTUNREACH nobody ready or in the subset
  bool least_bad = false;  // nobody was ready: these are suspect
};

// Fills `candidates` with the endpoints of the model that are ready and in the subset hint. When
// nobody is ready the suspect ones stand in. `subset` is scratch of the worker.
Gathered gather_candidates(const PickRequest& request, const endpoints::Topology& topology,
                           const abi::EndpointRecord* records,
                           std::bitset<abi::kEndpointIdsMax>& subset, Candidates& candidates);

// Of a request that says how long its affinity lasts: what was stamped longer ago does not live for
// this pick.
void limit_affinity(const PickRequest& request, std::uint64_t tick, Candidates& candidates);

}  // namespace pickd::pick

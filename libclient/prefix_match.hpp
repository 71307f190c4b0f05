// How many leading keys each of a set of endpoints holds, read from the mapped prefix table. The
// rules are those of abi/LAYOUT.md 3.4; the one addition is that the library does not trust the
// horizon to move: assumed words older than the TTL by its own clock are forgotten as well.
//
// All endpoints of a set are looked up at once. A look at one key divides the set into those that
// hold it and those that do not; a gallop finds a range for each part and bisection ends it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/limits.hpp"
#include "libclient/store_view.hpp"

namespace pickd::client {

// The endpoints in question, in arrays of the same order, and the answer for each.
struct MatchColumns {
  std::uint32_t count = 0;
  std::uint16_t ids[abi::kEndpointIdsMax];
  std::uint64_t lives[abi::kEndpointIdsMax];     // LifeWord of assumed words, as seen by this pick
  std::uint32_t blocks[abi::kEndpointIdsMax];    // out: leading keys held
  std::uint16_t position[abi::kEndpointIdsMax];  // by id; never cleared, so checked against `ids`
};

// Fills columns.blocks. No two of the ids are equal.
void match_prefix(const StoreView& store, std::uint64_t tick, const std::uint64_t* keys,
                  std::uint32_t key_count, MatchColumns& columns);

}  // namespace pickd::client

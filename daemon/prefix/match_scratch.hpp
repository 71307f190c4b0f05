// MatchScratch: what a match needs besides its arguments, so that it allocates nothing. One per
// worker, about 25 KiB, made once; not shared between threads. Nothing in it outlives a call.
#pragma once

#include <array>
#include <cstdint>

#include "abi/limits.hpp"

namespace pickd::prefix {

// Which stamps of an endpoint live: those in [horizon, horizon + span] (mod 2^20).
struct LiveRange {
  std::uint32_t horizon = 0;
  std::uint32_t span = 0;
};

struct MatchScratch {
  struct Group {
    std::uint64_t line_a;
    std::uint64_t line_b;
    std::uint64_t tag;
  };
  static constexpr std::size_t kGroups = abi::kEndpointIdsMax / abi::kEndpointGroupSize;

  // Of an endpoint id among the candidates.
  std::array<std::uint16_t, abi::kEndpointIdsMax> position{};
  std::array<std::uint32_t, kGroups> group_turn{};  // last look that put the group on the list
  std::array<Group, kGroups> groups{};
  std::uint32_t turn = 0;
};

}  // namespace pickd::prefix

// Told: how what an engine told of itself is read on the request path.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"

namespace pickd::pick {

// Whether what was told of this endpoint is too old to be believed: unknown then.
inline bool told_is_stale(const abi::EndpointRecord& record, std::uint64_t tick) {
  const std::uint32_t ticks_max = record.told_ticks_max.load(std::memory_order_relaxed);
  if (ticks_max == 0) return false;
  // Acquire; partner: the release of tell_load(). A scrape may be newer than this pick's tick.
  const std::uint32_t told = record.scrape_tick.load(std::memory_order_acquire);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(tick) - told) >
         static_cast<std::int32_t>(ticks_max);
}

constexpr std::uint32_t known_or_none(std::uint32_t told) {
  return told == abi::kUnknown32 ? 0 : told;
}

}  // namespace pickd::pick

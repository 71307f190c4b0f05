// Where the parts of a state segment lie, computed from what was asked for. Knows sizes, not
// contents.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"
#include "daemon/base/result.hpp"

namespace pickd::state {

struct StateParameters {
  std::uint64_t bytes = 256ULL << 20;  // of the whole file
  std::uint32_t block_tokens = 64;
  std::uint32_t endpoints_max = abi::kEndpointIdsMax - 1;
  std::uint32_t reservations_max = 65'536;  // rounded up to a power of two
  std::uint32_t workers = 1;
  std::uint32_t keys_max = abi::kKeysDefault;
  std::uint32_t blocks_min = 1;
  std::uint32_t blocks_max = abi::kKeysMax;
  std::uint64_t ttl_ticks = 36'000;
  std::uint32_t hot_holders = 10;
  abi::ClockMode clock_mode = abi::ClockMode::kBoot;
  std::uint64_t page_bytes =
      abi::kPageBytes;  // of the file system; the file is a whole number of them
};

struct StateLayout {
  std::uint64_t workers_offset = 0;
  std::uint64_t counters_offset = 0;
  std::uint64_t endpoints_offset = 0;
  std::uint64_t reservations_offset = 0;
  std::uint64_t routing_offset = 0;
  std::uint64_t models_offset = 0;
  std::uint64_t prefix_offset = 0;
  std::uint64_t prefix_lines = 0;
  std::uint64_t routing_bytes = 0;  // of each of the two buffers
  std::uint32_t endpoint_ids = 0;
  std::uint32_t reservation_slots = 0;
  std::uint64_t total_bytes = 0;
};

// Lays the parts out one behind the other on page borders; what is left is the prefix table.
// Fails when less than 1 MiB would be left for it, and says which size would do.
base::Result<StateLayout> lay_out(const StateParameters& parameters);

}  // namespace pickd::state

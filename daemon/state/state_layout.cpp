#include "daemon/state/state_layout.hpp"

#include <bit>
#include <string>

#include "abi/model_layout.hpp"

namespace pickd::state {

namespace {

constexpr std::uint64_t kPrefixBytesMin = 1ULL << 20;
constexpr std::uint64_t kRoutingBytesPerEndpoint =
    512;  // ids, a share of names of pools and models

std::uint64_t page_up(std::uint64_t bytes) {
  return (bytes + abi::kPageBytes - 1) & ~static_cast<std::uint64_t>(abi::kPageBytes - 1);
}

}  // namespace

base::Result<StateLayout> lay_out(const StateParameters& parameters) {
  StateLayout layout;
  layout.endpoint_ids = parameters.endpoints_max + 1;
  layout.reservation_slots = std::bit_ceil(parameters.reservations_max);
  layout.routing_bytes = page_up(64ULL * 1024 + kRoutingBytesPerEndpoint * layout.endpoint_ids);
  layout.total_bytes = parameters.bytes / parameters.page_bytes * parameters.page_bytes;

  std::uint64_t at = abi::kPageBytes;
  const auto take = [&at](std::uint64_t bytes) {
    const std::uint64_t offset = at;
    at += page_up(bytes);
    return offset;
  };
  layout.workers_offset = take(sizeof(abi::WorkerWord) * abi::kWorkersMax);
  layout.counters_offset = take(sizeof(abi::Word) * abi::kThreadsCountedMax *
                                static_cast<std::uint64_t>(abi::kCountersMax));
  layout.endpoints_offset = take(sizeof(abi::EndpointRecord) * layout.endpoint_ids);
  layout.reservations_offset = take(sizeof(abi::Reservation) * layout.reservation_slots);
  layout.routing_offset = take(2 * layout.routing_bytes);
  layout.models_offset = take(abi::models_bytes(layout.endpoint_ids));
  layout.prefix_offset = at;

  if (at + kPrefixBytesMin > layout.total_bytes) {
    const std::uint64_t mib = (at + kPrefixBytesMin + (1ULL << 20) - 1) >> 20;
    return base::Error{-EINVAL, "state.size_mib: " + std::to_string(parameters.bytes >> 20) +
                                    " MiB is too small for " +
                                    std::to_string(parameters.endpoints_max) + " endpoints and " +
                                    std::to_string(layout.reservation_slots) +
                                    " reservations; use at least " + std::to_string(mib)};
  }
  layout.prefix_lines = ((layout.total_bytes - at) / abi::kCacheLineBytes) & ~1ULL;
  return layout;
}

}  // namespace pickd::state

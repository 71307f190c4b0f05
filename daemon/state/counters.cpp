#include "daemon/state/counters.hpp"

#include "daemon/state/state_segment.hpp"

namespace pickd::state {

std::uint64_t sum_counter(const StateSegment& segment, abi::Counter counter) {
  std::uint64_t sum = 0;
  for (std::uint32_t row = 0; row < abi::kThreadsCountedMax; ++row) {
    sum +=
        segment.counters(row)[static_cast<std::uint32_t>(counter)].load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace pickd::state

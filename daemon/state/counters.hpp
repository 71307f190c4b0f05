// Counters in the state segment: each thread adds to its own row, readers sum the rows.
#pragma once

#include <cstdint>

#include "abi/counters.hpp"
#include "abi/state_layout.hpp"

namespace pickd::state {

// Rows of the counter table: workers first, then these.
inline constexpr std::uint32_t kControlRow = abi::kWorkersMax;
inline constexpr std::uint32_t kMaintenanceRow = abi::kWorkersMax + 1;
inline constexpr std::uint32_t kLearnerRow = abi::kWorkersMax + 2;

class Counters {
 public:
  // `row`: kCountersMax words that only the calling thread writes.
  explicit Counters(abi::Word* row) : row_(row) {}

  void add(abi::Counter counter, std::uint64_t count = 1) {
    abi::Word& word = row_[static_cast<std::uint32_t>(counter)];
    // One writer, so no read-modify-write; partner: sum_counter(), which may lag by one add.
    word.store(word.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }

 private:
  abi::Word* row_;
};

class StateSegment;

// The sum over all threads. Any thread.
std::uint64_t sum_counter(const StateSegment& segment, abi::Counter counter);

}  // namespace pickd::state

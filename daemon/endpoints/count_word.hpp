// Counts that belong to one generation of an endpoint. A change for another generation does
// nothing, so a late report can never touch the counts of whoever got the id after it.
#pragma once

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

// Adds `delta` (may be negative) when the word is of `generation`; never goes below zero.
// Partners: the same function in other workers and reset_count(); readers take a relaxed look.
inline bool change_count(abi::Word& word, std::uint32_t generation, std::int64_t delta) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  while (true) {
    const abi::CountWord count{seen};
    if (count.generation() != (generation & abi::kGenerationMask)) return false;
    const auto next = static_cast<std::int64_t>(count.count()) + delta;
    const auto changed =
        abi::CountWord::make(generation, next < 0 ? 0 : static_cast<std::uint64_t>(next));
    if (word.compare_exchange_weak(seen, changed.bits, std::memory_order_relaxed)) return true;
  }
}

// Begins the count of a new generation at zero.
inline void reset_count(abi::Word& word, std::uint32_t generation) {
  word.store(abi::CountWord::make(generation, 0).bits, std::memory_order_relaxed);
}

}  // namespace pickd::endpoints

// TraceRing: the newest traces of one worker, in memory of fixed size that no client can see.
//
// One thread puts, any thread looks; neither waits for the other. A new trace takes the place of
// the oldest. A reader copies and looks afterwards whether what it copied was still there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/pick/trace.hpp"

namespace pickd::pick {

class TraceRing {
 public:
  // Holds `bytes` of traces, rounded up to a power of two.
  explicit TraceRing(std::size_t bytes);

  // The largest trace it takes, in words.
  std::size_t trace_words_max() const { return capacity_ - 1; }

  // Its one writer only. False: the trace is larger than the ring.
  bool put(std::span<const std::uint64_t> trace);

  // Any thread. The newest trace of which `wanted` says so, copied; allocates.
  std::optional<std::vector<std::uint64_t>> newest(
      const std::function<bool(const TracedPick& pick)>& wanted) const;

 private:
  // Copies from `at`; false: it was overwritten meanwhile.
  bool copy(std::uint64_t at, std::span<std::uint64_t> to) const;

  std::size_t capacity_;  // words
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  // Places count on without end; a word stands at its place modulo the capacity. A trace stands as
  // its length and then its words.
  alignas(64) std::atomic<std::uint64_t> oldest_{0};
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace pickd::pick

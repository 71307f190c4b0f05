// Histogram: counts of values by size, in buckets fixed at compile time. One thread adds, any
// thread reads; neither waits for the other. In the daemon's own memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pickd::base {

// The buckets of a histogram: value k is counted in the first whose bound it does not exceed, what
// exceeds all in one more. `unit` times a value is the value in the unit that is shown.
struct HistogramShape {
  std::span<const std::uint64_t> bounds;
  double unit;
};

// What a histogram held at one moment; those of several threads may be added up.
struct HistogramCounts {
  const HistogramShape* shape = nullptr;
  std::vector<std::uint64_t> buckets = {};  // one more than bounds
  std::uint64_t sum = 0;                    // of the values

  std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const std::uint64_t bucket : buckets) all += bucket;
    return all;
  }
  void add(const HistogramCounts& other) {
    if (shape == nullptr) {
      *this = other;
      return;
    }
    for (std::size_t at = 0; at < buckets.size(); ++at) buckets[at] += other.buckets[at];
    sum += other.sum;
  }
};

template <const auto& kBounds>
class Histogram {
 public:
  void add(std::uint64_t value) {
    std::size_t at = 0;
    while (at < kBounds.size() && value > kBounds[at]) ++at;
    bump(buckets_[at], 1);
    bump(sum_, value);
  }

  // Any thread. Buckets and sum may lag behind each other by what is being added.
  HistogramCounts counts(const HistogramShape& shape) const {
    HistogramCounts counts{&shape, {}, sum_.load(std::memory_order_relaxed)};
    for (const auto& bucket : buckets_)
      counts.buckets.push_back(bucket.load(std::memory_order_relaxed));
    return counts;
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  // One writer, so no read-modify-write; partner: counts(), which orders nothing by it.
  static void bump(Word& word, std::uint64_t by) {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<Word, kBounds.size() + 1> buckets_{};
  Word sum_{0};
};

}  // namespace pickd::base

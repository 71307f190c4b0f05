// Loops over all candidates that several places need: over plain columns, without branches and
// without a value that waits for the one before it, so that compilers make vectors of them. Knows
// numbers and nothing of what they measure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

namespace pickd::pick {

template <typename Number>
struct LeastAndMost {
  Number least = std::numeric_limits<Number>::infinity();
  Number most = -std::numeric_limits<Number>::infinity();
};

// Of those that are numbers: written so that NaN is neither lower nor higher.
template <typename Number>
LeastAndMost<Number> range_of(std::span<const Number> values) {
  constexpr std::size_t kLanes = 32 / sizeof(Number);
  LeastAndMost<Number> found;
  Number least[kLanes];
  Number most[kLanes];
  std::fill(std::begin(least), std::end(least), found.least);
  std::fill(std::begin(most), std::end(most), found.most);
  std::size_t at = 0;
  for (; at + kLanes <= values.size(); at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const Number value = values[at + lane];
      least[lane] = value < least[lane] ? value : least[lane];
      most[lane] = value > most[lane] ? value : most[lane];
    }
  }
  const auto take = [&found](Number low, Number high) {
    found.least = low < found.least ? low : found.least;
    found.most = high > found.most ? high : found.most;
  };
  for (; at < values.size(); ++at) take(values[at], values[at]);
  for (std::size_t lane = 0; lane < kLanes; ++lane) take(least[lane], most[lane]);
  return found;
}

inline bool all_are_numbers(std::span<const float> values) {
  std::uint32_t others = 0;
  for (const float value : values) others |= value != value ? 1U : 0U;
  return others == 0;
}

// A score of kNoScore, which is minus infinity, adds nothing, as 0 does.
inline void add_weighted(std::span<const float> scores, double weight, double* sums) {
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const float score = scores[at];
    const float not_negative = score > 0 ? score : 0;
    const float clamped = not_negative < 1 ? not_negative : 1;
    sums[at] += weight * static_cast<double>(clamped);
  }
}

// Below 2^31, as the baseline's vectors compare.
inline std::uint32_t greatest(std::span<const std::uint32_t> counts) {
  std::int32_t most = 0;
  for (const std::uint32_t here : counts) {
    const auto count = static_cast<std::int32_t>(here);
    most = count > most ? count : most;
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace pickd::pick

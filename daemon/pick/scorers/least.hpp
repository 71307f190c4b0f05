// The score of several scorers: a measure between its least and its greatest value, least first.
#pragma once

#include <cstdint>
#include <span>

#include "daemon/pick/column_loops.hpp"

namespace pickd::pick {

// (max - value) / (max - min), 1 when all are equal. An unknown value enters neither and is given
// no score.
inline void score_least_first(std::span<const float> values, std::span<float> scores) {
  const auto [least, most] = range_of(values);
  if (!(least < most)) {
    for (std::size_t at = 0; at < scores.size(); ++at)
      scores[at] = values[at] == values[at] ? 1.0F : scores[at];
    return;
  }
  const float range = most - least;
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const float score = (most - values[at]) / range;
    scores[at] = values[at] == values[at] ? score : scores[at];
  }
}

inline bool none_known(std::span<const float> values) {
  std::uint32_t known = 0;
  for (const float value : values) known |= value == value ? 1U : 0U;
  return known == 0;
}

}  // namespace pickd::pick

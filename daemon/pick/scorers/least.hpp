// The score of several scorers: a measure between its least and its greatest value, least first.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace pickd::pick {

// (max - value) / (max - min), 1 when all are equal. An unknown value enters neither and is given
// no score.
inline void score_least_first(std::span<const float> values, std::span<float> scores) {
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();
  for (const float value : values) {
    if (std::isnan(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  for (std::size_t at = 0; at < scores.size(); ++at) {
    if (std::isnan(values[at])) continue;
    scores[at] = most == least ? 1.0F : (most - values[at]) / (most - least);
  }
}

inline bool none_known(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isnan(value); });
}

}  // namespace pickd::pick

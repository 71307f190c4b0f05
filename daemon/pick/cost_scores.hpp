// From costs to scores: lowest cost / cost, so that the order is that of the costs and equal costs
// are equal scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

// Costs above the lowest by no more than either are one cost with it.
struct SameCost {
  float share = 0;  // of the lowest
  float most = 0;
};

// Infinite when no cost is a number. Minima in lanes, so that none waits for the one before it.
inline float lowest_cost(std::span<const float> costs) {
  constexpr std::size_t kLanes = 8;
  constexpr float kNone = std::numeric_limits<float>::infinity();
  // What is no number or below 0 is no cost.
  const auto cost_or_none = [](float cost) { return cost >= 0 ? cost : kNone; };
  float lowest[kLanes];
  std::fill(std::begin(lowest), std::end(lowest), kNone);
  std::size_t at = 0;
  for (; at + kLanes <= costs.size(); at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float cost = cost_or_none(costs[at + lane]);
      lowest[lane] = cost < lowest[lane] ? cost : lowest[lane];
    }
  }
  for (; at < costs.size(); ++at) lowest[0] = std::min(lowest[0], cost_or_none(costs[at]));
  return *std::min_element(std::begin(lowest), std::end(lowest));
}

// False: no cost is a number, and no score was given. `scores` may be the costs themselves. A cost
// that is none gets no score.
inline bool score_by_cost(std::span<const float> costs, std::span<float> scores,
                          SameCost same = {}) {
  const float lowest = lowest_cost(costs);
  if (!std::isfinite(lowest)) return false;
  // A cost of nothing at all would make every other score 0.
  constexpr float kCostMin = 1e-6F;
  const float least = std::max(lowest, kCostMin);
  const float best = least + std::min(least * same.share, same.most);
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const float cost = costs[at];
    const float score = best / (cost > kCostMin ? cost : kCostMin);
    const float at_most_one = score < 1.0F ? score : 1.0F;
    scores[at] = cost >= 0 ? at_most_one : kNoScore;
  }
  return true;
}

}  // namespace pickd::pick

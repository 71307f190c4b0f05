// From costs to scores: lowest cost / cost, so that the order is that of the costs and equal costs
// are equal scores.
#pragma once

#include <algorithm>
#include <span>

namespace pickd::pick {

// `costs` become scores in place. A cost is positive; a non-positive one counts as the least.
inline void score_by_cost(std::span<float> costs) {
  const float least = *std::min_element(costs.begin(), costs.end());
  for (float& cost : costs) cost = cost <= least ? 1.0F : std::max(least, 0.0F) / cost;
}

}  // namespace pickd::pick

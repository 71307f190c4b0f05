// least-predicted-cost-scorer: the cost in seconds of sending the request to a candidate, as a
// score in the same order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class LeastPredictedCostScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto cost = context.candidates.column(Column::kCost);
    const float lowest = lowest_of(cost);
    if (!std::isfinite(lowest)) return true;  // nothing is predicted: no opinion
    // A cost of nothing at all would make every other score 0. Costs so close are one cost: what an
    // idle fleet differs in is what is left of traffic long ago, and all would go where least is.
    // At most a millisecond: half a percent of a long prompt is a prefix worth going for.
    constexpr float kCostMin = 1e-6F;
    constexpr float kSameShare = .005F;
    constexpr float kSameSecondsMax = .001F;
    const float least = std::max(lowest, kCostMin);
    const float best = least + std::min(least * kSameShare, kSameSecondsMax);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const float score = best / (cost[at] > kCostMin ? cost[at] : kCostMin);
      const float at_most_one = score < 1.0F ? score : 1.0F;
      scores[at] = cost[at] >= 0 ? at_most_one : kNoScore;
    }
    return true;
  }

 private:
  // Infinite when no cost is a number. Minima in lanes, so that none waits for the one before it.
  static float lowest_of(std::span<const float> costs) {
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
};

}  // namespace

PluginInfo describe_least_predicted_cost_scorer() {
  return {"least-predicted-cost-scorer",
          PluginKind::kScorer,
          columns_of(Column::kCost, Column::kUncachedTokens),
          "Prefers the endpoint where the request costs the fewest seconds, learned rates and load "
          "taken together.",
          "lowest cost / cost, 1 within 0.5 % and 1 ms; cost = wait + prefill + price of fleet "
          "work + own "
          "decode + slow-down "
          "of others",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> {
            return std::make_unique<LeastPredictedCostScorer>();
          },
          true};
}

}  // namespace pickd::pick

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
      const float score = std::min(1.0F, best / std::max(kCostMin, cost[at]));
      scores[at] = cost[at] >= 0 ? score : kNoScore;
    }
    return true;
  }

 private:
  // Infinite when no cost is a number. Four minima, so that none waits for the one before it.
  static float lowest_of(std::span<const float> costs) {
    constexpr std::size_t kMinima = 4;
    float lowest[kMinima];
    std::fill(std::begin(lowest), std::end(lowest), std::numeric_limits<float>::infinity());
    for (std::size_t at = 0; at < costs.size(); ++at) {
      // Written so that NaN is never lower; what is below 0 is no cost.
      float& least = lowest[at % kMinima];
      least = costs[at] >= 0 && costs[at] < least ? costs[at] : least;
    }
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
          }};
}

}  // namespace pickd::pick

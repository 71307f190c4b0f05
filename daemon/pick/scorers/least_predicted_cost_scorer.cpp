// least-predicted-cost-scorer: the cost in seconds of sending the request to a candidate, as a
// score in the same order.
#include <algorithm>
#include <cmath>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class LeastPredictedCostScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto cost = context.candidates.column(Column::kCost);
    float lowest = std::numeric_limits<float>::infinity();
    for (const float seconds : cost) {
      if (seconds >= 0) lowest = std::min(lowest, seconds);
    }
    if (!std::isfinite(lowest)) return true;  // nothing is predicted: no opinion
    // A cost of nothing at all would make every other score 0.
    constexpr float kCostMin = 1e-6F;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (cost[at] >= 0) scores[at] = std::max(lowest, kCostMin) / std::max(cost[at], kCostMin);
    }
    return true;
  }
};

}  // namespace

PluginInfo describe_least_predicted_cost_scorer() {
  return {
      "least-predicted-cost-scorer",
      PluginKind::kScorer,
      columns_of(Column::kCost, Column::kUncachedTokens),
      "Prefers the endpoint where the request costs the fewest seconds, learned rates and load "
      "taken together.",
      "lowest cost / cost; cost = wait + prefill + price of fleet work + own decode + slow-down "
      "of others",
      {},
      [](Parameters&) -> std::unique_ptr<Plugin> {
        return std::make_unique<LeastPredictedCostScorer>();
      }};
}

}  // namespace pickd::pick

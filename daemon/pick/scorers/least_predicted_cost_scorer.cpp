// least-predicted-cost-scorer: the cost in seconds of sending the request to a candidate, as a
// score in the same order.
#include "daemon/pick/composite.hpp"
#include "daemon/pick/cost_scores.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

// Costs so close are one cost: what an idle fleet differs in is what is left of traffic long ago,
// and all would go where least is. At most a millisecond: half a percent of a long prompt is a
// prefix worth going for.
constexpr SameCost kSame{.share = .005F, .most = .001F};

class LeastPredictedCostScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    if (!score_by_cost(context.candidates.column(Column::kCost), scores, kSame))
      score_composite(context, {}, scores);  // its columns are there when nothing is predicted
    return true;
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
          "work + own decode + slow-down of others; while the model is broken: composite of KV "
          "use, queue and prefix match, and the reason of the pick is \"unpredicted\"",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> {
            return std::make_unique<LeastPredictedCostScorer>();
          },
          true};
}

}  // namespace pickd::pick

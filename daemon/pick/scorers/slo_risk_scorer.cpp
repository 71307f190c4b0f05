// slo-risk-scorer: the fewest requests that will miss the latency they want, this one and those
// that run beside it; where none will, the least cost.
#include <algorithm>
#include <cmath>

#include "daemon/latency/miss_chance.hpp"
#include "daemon/pick/composite.hpp"
#include "daemon/pick/cost_scores.hpp"
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/slo_view.hpp"

namespace pickd::pick {

namespace {

class SloRiskScorer final : public Scorer {
 public:
  explicit SloRiskScorer(double cost_weight) : cost_weight_(static_cast<float>(cost_weight)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const Candidates& candidates = context.candidates;
    const bool wants = context.request.slo_ttft_ms > 0 || context.request.slo_itl_ms > 0;
    // The cost alone is told from the start: what nobody measured yet has its class's default.
    const bool costs = std::isfinite(candidates.column(Column::kCost)[0]);
    if (!costs || (wants && !SloView(context).ready())) {
      score_composite(context, {}, scores);
      return true;
    }
    const auto ttft = candidates.column(Column::kPredictedTtft);
    const auto itl = candidates.column(Column::kPredictedItl);
    const auto cost = candidates.column(Column::kCost);
    const auto others = candidates.column(Column::kMissesOfOthers);
    const float slo_ttft_s = context.request.slo_ttft_ms * 1e-3F;
    const float slo_itl_s = context.request.slo_itl_ms * 1e-3F;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const float first = slo_ttft_s > 0 ? latency::miss_chance(ttft[at] / slo_ttft_s) : 0;
      const float rest = slo_itl_s > 0 ? latency::miss_chance(itl[at] / slo_itl_s) : 0;
      const float own = 1 - (1 - first) * (1 - rest);
      // Nothing at all would make every other score 0.
      constexpr float kRiskMin = 1e-6F;
      scores[at] = std::max(own + others[at] + cost_weight_ * cost[at], kRiskMin);
    }
    score_by_cost(scores, scores);
    return true;
  }

 private:
  float cost_weight_;
};

}  // namespace

PluginInfo describe_slo_risk_scorer() {
  return {"slo-risk-scorer",
          PluginKind::kScorer,
          SloView::kColumns | kCompositeColumns |
              columns_of(Column::kPredictedTtft, Column::kPredictedItl, Column::kCost),
          "Prefers the endpoint where the fewest requests are expected to miss the TTFT or ITL "
          "that they want, this one and those running there: loose requests gather where they do "
          "not slow the strict ones.",
          "lowest risk / risk; risk = chance that this request misses + misses that it adds among "
          "those running there + costWeight x cost in seconds; a chance is half where the "
          "prediction is what is wanted, 1 in 18 at 0.7 of it; something wanted and no model "
          "ready: composite of "
          "KV use, queue and prefix match, and the reason of the pick is \"unpredicted\"",
          {{"costWeight", ParameterKind::kNumber, "0.05", 0, 1e6, "",
            "Missed requests that a second of cost counts as: more serves those without a wish "
            "better."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<SloRiskScorer>(parameters.number("costWeight"));
          }};
}

}  // namespace pickd::pick

// lmetric: the product of what has to be prefilled and of how many are served there already.
// Source: "LMetric" (OSDI 2026, arXiv 2603.15202): uncached prefill tokens x (batch + 1).
#include <algorithm>

#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/cost_scores.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

config::SchedulingConfig make_lmetric_policy();

namespace {

class LmetricScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto uncached = context.candidates.column(Column::kUncachedTokens);
    const auto requests = context.candidates.column(Column::kInflightRequests);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      // A token at least: an engine computes the last one of a prompt that it holds, and nothing
      // times any load would be the best place however busy.
      scores[at] = std::max(1.0F, uncached[at]) * (requests[at] + 1.0F);
    }
    score_by_cost(scores, scores);
    return true;
  }
};

}  // namespace

PluginInfo describe_lmetric_scorer() {
  return {"lmetric-scorer",
          PluginKind::kScorer,
          columns_of(Column::kUncachedTokens, Column::kInflightRequests),
          "Of the policy lmetric: least uncached tokens times requests in flight.",
          "lowest cost / cost, with cost = max(1, uncached tokens) x (requests in flight + 1)",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<LmetricScorer>(); }};
}

config::SchedulingConfig make_lmetric_policy() {
  static constexpr PluginWeight kPlugins[] = {{"lmetric-scorer", 1}, {"max-score-picker", 1}};
  return make_scheduling("lmetric", kPlugins);
}

}  // namespace pickd::pick

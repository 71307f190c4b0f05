// dynamo-cost: blocks to prefill there, less what is cached, plus blocks that are being decoded
// there. Lowest wins, ties at random (temperature 0).
// Source: github.com/ai-dynamo/dynamo, lib/kv-router, default cost of the KV router.
#include <algorithm>

#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/cost_scores.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

config::SchedulingConfig make_dynamo_cost_policy();

namespace {

class DynamoCostScorer final : public Scorer {
 public:
  DynamoCostScorer(double prefill_scale, double credit, double request_weight, double block_tokens)
      : prefill_scale_(static_cast<float>(prefill_scale)),
        credit_(static_cast<float>(credit)),
        request_weight_(static_cast<float>(request_weight)),
        block_tokens_(static_cast<float>(block_tokens)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const Candidates& candidates = context.candidates;
    const auto uncached = candidates.column(Column::kUncachedTokens);
    const auto prefill = candidates.column(Column::kInflightTokens);
    const auto decode = candidates.column(Column::kInflightPrompts);
    const auto requests = candidates.column(Column::kInflightRequests);
    const auto prompt = static_cast<float>(context.request.prompt_tokens);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const float cached = prompt - uncached[at];
      const float to_prefill = std::max(0.0F, prefill[at] + prompt - credit_ * cached);
      // One block more for all, so that a cost of nothing has no infinite score.
      scores[at] = 1.0F + prefill_scale_ * to_prefill / block_tokens_ + decode[at] / block_tokens_ +
                   request_weight_ * requests[at];
    }
    score_by_cost(scores, scores);
    return true;
  }

 private:
  float prefill_scale_;
  float credit_;
  float request_weight_;
  float block_tokens_;
};

}  // namespace

PluginInfo describe_dynamo_cost_scorer() {
  return {
      "dynamo-cost-scorer",
      PluginKind::kScorer,
      columns_of(Column::kUncachedTokens, Column::kInflightTokens, Column::kInflightPrompts,
                 Column::kInflightRequests),
      "Of the policy dynamo-cost: least blocks to prefill and to decode.",
      "lowest cost / cost, with cost = 1 + prefillLoadScale x max(0, prefill in flight + prompt "
      "- overlapScoreCredit x cached) + prompts in flight, in blocks, + "
      "decodeActiveRequestWeight x requests in flight",
      {{"prefillLoadScale", ParameterKind::kNumber, "1", 0, 1e6, "",
        "Weight of what has to be prefilled."},
       {"overlapScoreCredit", ParameterKind::kNumber, "1", 0, 1e6, "",
        "What a cached block counts against it."},
       {"decodeActiveRequestWeight", ParameterKind::kNumber, "0", 0, 1e6, "",
        "Blocks that a request in flight counts besides its prompt."},
       {"blockTokens", ParameterKind::kNumber, "64", 1, 1024, "", "Tokens of a block."}},
      [](Parameters& parameters) -> std::unique_ptr<Plugin> {
        const double scale = parameters.number("prefillLoadScale");
        const double credit = parameters.number("overlapScoreCredit");
        const double request = parameters.number("decodeActiveRequestWeight");
        return std::make_unique<DynamoCostScorer>(scale, credit, request,
                                                  parameters.number("blockTokens"));
      }};
}

config::SchedulingConfig make_dynamo_cost_policy() {
  static constexpr PluginWeight kPlugins[] = {{"dynamo-cost-scorer", 1}, {"max-score-picker", 1}};
  return make_scheduling("dynamo-cost", kPlugins);
}

}  // namespace pickd::pick

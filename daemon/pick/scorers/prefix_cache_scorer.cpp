// prefix-cache-scorer: share of the prompt's blocks an endpoint holds, as in the Endpoint Picker;
// an optional second term lets the length of a match count beside its share.
#include <algorithm>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class PrefixCacheScorer final : public Scorer {
 public:
  PrefixCacheScorer(double length_weight, double length_scale_tokens)
      : length_weight_(static_cast<float>(length_weight)),
        length_scale_tokens_(static_cast<float>(length_scale_tokens)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const std::size_t total = context.request.keys.size();
    const auto match_blocks = context.candidates.column(Column::kMatchBlocks);
    const auto uncached = context.candidates.column(Column::kUncachedTokens);
    const auto prompt_tokens = static_cast<float>(context.request.prompt_tokens);
    const float share = total == 0 ? 0.0F : (1.0F - length_weight_) / static_cast<float>(total);
    for (std::size_t at = 0; at < scores.size(); ++at) scores[at] = share * match_blocks[at];
    if (length_weight_ == 0.0F) return true;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const float length = std::min(1.0F, (prompt_tokens - uncached[at]) / length_scale_tokens_);
      scores[at] += length_weight_ * length * length;
    }
    return true;
  }

 private:
  float length_weight_;
  float length_scale_tokens_;
};

}  // namespace

PluginInfo describe_prefix_cache_scorer() {
  return {"prefix-cache-scorer",
          PluginKind::kScorer,
          columns_of(Column::kMatchBlocks, Column::kUncachedTokens),
          "Prefers endpoints that hold more of the prompt's prefix.",
          "(1 - w) match / total blocks + w min(1, matched tokens / scale)^2, with w = "
          "matchLengthWeight and scale = matchLengthScaleTokens; 0 without a prompt",
          {{"matchLengthWeight", ParameterKind::kNumber, "0", 0, 1, "",
            "Share of the score that the length of a match decides."},
           {"matchLengthScaleTokens", ParameterKind::kNumber, "8192", 1, 1e9, "",
            "Tokens of a match from which its length counts in full."},
           {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one prefix table."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const double weight = parameters.number("matchLengthWeight");
            const double scale = parameters.number("matchLengthScaleTokens");
            return std::make_unique<PrefixCacheScorer>(weight, scale);
          }};
}

}  // namespace pickd::pick

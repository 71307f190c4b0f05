// prefix-cache-scorer: share of the prompt's blocks an endpoint holds, as in the Endpoint Picker;
// an optional second term lets the length of a match count beside its share.
#include <algorithm>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/plugin.hpp"

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
    for (std::size_t at = 0; at < scores.size(); ++at) {
      scores[at] = share * match_blocks[at];
      if (length_weight_ != 0.0F) {
        const float length = std::min(1.0F, (prompt_tokens - uncached[at]) / length_scale_tokens_);
        scores[at] += length_weight_ * length * length;
      }
    }
    return true;
  }

 private:
  float length_weight_;
  float length_scale_tokens_;
};

}  // namespace

std::unique_ptr<Plugin> make_prefix_cache_scorer(config::ParameterReader& parameters) {
  const double weight = parameters.number("matchLengthWeight", 0.0, 0.0, 1.0);
  const double scale = parameters.number("matchLengthScaleTokens", 8192.0, 1.0, 1e9);
  return std::make_unique<PrefixCacheScorer>(weight, scale);
}

}  // namespace pickd::pick

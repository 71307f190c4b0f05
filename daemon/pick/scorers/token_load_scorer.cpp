// token-load-scorer: prefill of ours that stands before this request's first token, its own
// included.
#include <algorithm>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

class TokenLoadScorer final : public Scorer {
 public:
  explicit TokenLoadScorer(double threshold_tokens)
      : threshold_tokens_(static_cast<float>(threshold_tokens)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto inflight = context.candidates.column(Column::kInflightTokens);
    const auto uncached = context.candidates.column(Column::kUncachedTokens);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      scores[at] = 1.0F - std::min(1.0F, (inflight[at] + uncached[at]) / threshold_tokens_);
    }
    return true;
  }

 private:
  float threshold_tokens_;
};

}  // namespace

std::unique_ptr<Plugin> make_token_load_scorer(config::ParameterReader& parameters) {
  return std::make_unique<TokenLoadScorer>(
      parameters.number("queueThresholdTokens", 4'194'304.0, 1.0, 1e12));
}

}  // namespace pickd::pick

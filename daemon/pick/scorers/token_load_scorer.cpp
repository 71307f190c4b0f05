// token-load-scorer: prefill of ours that stands before this request's first token, its own
// included.
#include <algorithm>

#include "daemon/pick/parameters.hpp"

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

PluginInfo describe_token_load_scorer() {
  return {"token-load-scorer",
          PluginKind::kScorer,
          columns_of(Column::kInflightTokens, Column::kUncachedTokens),
          "Prefers endpoints with less prefill of ours ahead, this request's included.",
          "1 - min(1, (uncached tokens in flight + uncached tokens of this request) / "
          "queueThresholdTokens)",
          {{"queueThresholdTokens", ParameterKind::kNumber, "4194304", 1, 1e12, "",
            "Tokens from which the score is 0."},
           {"inFlightLoadProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one count of its own requests."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<TokenLoadScorer>(parameters.number("queueThresholdTokens"));
          }};
}

}  // namespace pickd::pick

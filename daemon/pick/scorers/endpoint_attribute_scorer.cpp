// endpoint-attribute-scorer: one number of each endpoint, between the least and the greatest of the
// candidates or between two given ones.
#include <algorithm>
#include <cmath>

#include "daemon/pick/measure.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class EndpointAttributeScorer final : public Scorer {
 public:
  EndpointAttributeScorer(Measure measure, bool lower_is_better, std::optional<float> low,
                          float high)
      : measure_(std::move(measure)), lower_is_better_(lower_is_better), low_(low), high_(high) {}

  ColumnSet columns(ColumnSet) const override { return measure_.columns(); }

  bool score(const PickContext& context, std::span<float> scores) const override {
    float low = low_.value_or(std::numeric_limits<float>::infinity());
    float high = low_ ? high_ : -std::numeric_limits<float>::infinity();
    for (std::size_t at = 0; at < scores.size(); ++at) {
      scores[at] = measure_.of(context.candidates, at);
      if (low_ || std::isnan(scores[at])) continue;
      low = std::min(low, scores[at]);
      high = std::max(high, scores[at]);
    }
    for (float& score : scores) {
      if (std::isnan(score)) {
        score = 0;  // as the Endpoint Picker has it
      } else if (high == low) {
        score = 1;
      } else {
        const float share = std::clamp((score - low) / (high - low), 0.0F, 1.0F);
        score = lower_is_better_ ? 1 - share : share;
      }
    }
    return true;
  }

 private:
  Measure measure_;
  bool lower_is_better_;
  std::optional<float> low_;  // nothing: of the candidates
  float high_;
};

std::unique_ptr<Plugin> make(Parameters& parameters) {
  const std::string name = parameters.text("attributeKey");
  auto measure = Measure::named(name);
  if (!measure && !name.empty()) {
    parameters.refuse("attributeKey", "pickd knows no attribute " + config::shown(name) +
                                          "; known: " + std::string(Measure::kNames));
  }
  const bool lower = parameters.choice("algorithm.type") == "linear_lower_is_better";
  std::optional<float> low;
  float high = 0;
  if (parameters.has("algorithm.normalization.fixedRange")) {
    low = static_cast<float>(parameters.number("algorithm.normalization.fixedRange.min"));
    high = static_cast<float>(parameters.number("algorithm.normalization.fixedRange.max"));
    if (*low >= high) {
      parameters.refuse("algorithm.normalization.fixedRange.max", "must be greater than min");
    }
    if (parameters.has("algorithm.normalization.adaptiveRange")) {
      parameters.refuse("algorithm.normalization.adaptiveRange",
                        "stands beside fixedRange; give one of them");
    }
  }
  return std::make_unique<EndpointAttributeScorer>(measure.value_or(Measure()), lower, low, high);
}

}  // namespace

PluginInfo describe_endpoint_attribute_scorer() {
  constexpr double kMost = 1e30;
  return {
      "endpoint-attribute-scorer",
      PluginKind::kScorer,
      Measure::kColumns,
      "Scores endpoints by one of their numbers.",
      "(value - min) / (max - min), or 1 minus that with linear_lower_is_better; min and max of "
      "the candidates, where all are equal 1, or of fixedRange; 0 where it is unknown",
      {{"attributeKey", ParameterKind::kText, "", 1, 255, "",
        "active-requests, active-tokens, running-requests, waiting-queue, kv-cache-utilization "
        "or label:KEY.",
        true},
       {"producer", ParameterKind::kText, "", 0, 255, "",
        "Taken; the attribute's name says where it comes from."},
       {"algorithm.type", ParameterKind::kChoice, "", 0, 0,
        "linear_lower_is_better|linear_higher_is_better", "Which end is the best.", true},
       {"algorithm.normalization.adaptiveRange", ParameterKind::kTree, "", 0, 0, "",
        "An empty map: the range of the candidates, which is the default."},
       {"algorithm.normalization.fixedRange.min", ParameterKind::kNumber, "0", -kMost, kMost, "",
        "Least of a fixed range."},
       {"algorithm.normalization.fixedRange.max", ParameterKind::kNumber, "0", -kMost, kMost, "",
        "Most of a fixed range."}},
      make};
}

}  // namespace pickd::pick

// endpoint-attribute-filter: endpoints by one number: against a threshold, within a range, the best
// k, or a percentile of the candidates.
#include <algorithm>
#include <cmath>

#include "daemon/pick/measure.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

enum class Rule : std::uint8_t { kThreshold, kRange, kTopK, kPercentile };

struct Settings {
  Rule rule = Rule::kThreshold;
  std::string op;
  float low = 0;  // threshold value, least of the range
  float high = 0;
  std::uint64_t k = 0;
  double percentile = 0;
  bool higher_is_better = true;
  bool keep_missing = true;
  bool fall_back = false;
};

bool compare(float value, const std::string& op, float against) {
  if (op == "LessThan") return value < against;
  if (op == "LessThanOrEqual") return value <= against;
  if (op == "GreaterThan") return value > against;
  if (op == "GreaterThanOrEqual") return value >= against;
  return (value == against) == (op == "Equal");
}

class EndpointAttributeFilter final : public Filter {
 public:
  EndpointAttributeFilter(Measure measure, Settings settings)
      : measure_(std::move(measure)), settings_(std::move(settings)) {}

  ColumnSet columns(ColumnSet) const override { return measure_.columns(); }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    float values[Candidates::kMax];
    for (std::size_t at = 0; at < keep.size(); ++at)
      values[at] = measure_.of(context.candidates, at);
    const float cut = cut_of({values, keep.size()});
    bool anybody = false;
    for (std::size_t at = 0; at < keep.size(); ++at) {
      keep[at] = std::isnan(values[at]) ? settings_.keep_missing : passes(values[at], cut);
      anybody |= keep[at] != 0;
    }
    if (!anybody && settings_.fall_back) std::fill(keep.begin(), keep.end(), std::uint8_t{1});
  }

 private:
  bool passes(float value, float cut) const {
    switch (settings_.rule) {
      case Rule::kThreshold: return compare(value, settings_.op, settings_.low);
      case Rule::kRange: return value >= settings_.low && value <= settings_.high;
      case Rule::kTopK:
      case Rule::kPercentile: return settings_.higher_is_better ? value >= cut : value <= cut;
    }
    return true;
  }

  // The worst value that still passes, of those known; NaN where the rule has no use for it.
  float cut_of(std::span<const float> values) const {
    if (settings_.rule != Rule::kTopK && settings_.rule != Rule::kPercentile) return kUnknown;
    float sorted[Candidates::kMax];
    std::size_t known = 0;
    for (const float value : values) {
      if (!std::isnan(value)) sorted[known++] = value;
    }
    if (known == 0) return kUnknown;
    std::sort(sorted, sorted + known);
    if (settings_.rule == Rule::kTopK) {
      const std::size_t k = std::min<std::size_t>(settings_.k, known);
      return settings_.higher_is_better ? sorted[known - k] : sorted[k - 1];
    }
    const double rank = std::ceil(settings_.percentile / 100.0 * static_cast<double>(known));
    return sorted[std::max<std::size_t>(1, static_cast<std::size_t>(rank)) - 1];
  }

  Measure measure_;
  Settings settings_;
};

std::unique_ptr<Plugin> make(Parameters& parameters) {
  Settings settings;
  const std::string name = parameters.text("attribute");
  auto measure = Measure::named(name);
  if (!measure && !name.empty()) {
    parameters.refuse("attribute", "pickd knows no attribute " + config::shown(name) +
                                       "; known: " + std::string(Measure::kNames));
  }
  const std::string type = parameters.choice("algorithm.type");
  const auto needs = [&](const char* key) {
    if (!parameters.has(key))
      parameters.refuse(key, "is missing; the algorithm `" + type + "` needs it");
  };
  settings.keep_missing = parameters.choice("onMissing") == "Pass";
  settings.fall_back = parameters.boolean("fallbackOnEmpty");
  if (type == "threshold") {
    needs("algorithm.threshold.operator");
    needs("algorithm.threshold.value");
    settings.op = parameters.choice("algorithm.threshold.operator");
    settings.low = static_cast<float>(parameters.number("algorithm.threshold.value"));
  } else if (type == "range") {
    settings.rule = Rule::kRange;
    needs("algorithm.range.min");
    needs("algorithm.range.max");
    settings.low = static_cast<float>(parameters.number("algorithm.range.min"));
    settings.high = static_cast<float>(parameters.number("algorithm.range.max"));
    if (settings.low > settings.high)
      parameters.refuse("algorithm.range.max", "must not be less than min");
  } else if (type == "topK") {
    settings.rule = Rule::kTopK;
    needs("algorithm.topK.k");
    settings.k = parameters.integer("algorithm.topK.k");
    settings.higher_is_better = parameters.boolean("algorithm.topK.higherIsBetter");
  } else if (type == "percentile") {
    settings.rule = Rule::kPercentile;
    needs("algorithm.percentile.percentile");
    settings.percentile = parameters.number("algorithm.percentile.percentile");
    settings.higher_is_better = parameters.boolean("algorithm.percentile.higherIsBetter");
  }
  return std::make_unique<EndpointAttributeFilter>(measure.value_or(Measure()),
                                                   std::move(settings));
}

}  // namespace

PluginInfo describe_endpoint_attribute_filter() {
  constexpr double kMost = 1e30;
  return {
      "endpoint-attribute-filter",
      PluginKind::kFilter,
      Measure::kColumns,
      "Keeps endpoints by one of their numbers.",
      "threshold: value OP threshold; range: min <= value <= max; topK: the k best, equals of the "
      "k-th too; percentile: up to the value at place ceil(P / 100 x N)",
      {{"attribute", ParameterKind::kText, "", 1, 255, "",
        "active-requests, active-tokens, running-requests, waiting-queue, kv-cache-utilization "
        "or label:KEY.",
        true},
       {"producer", ParameterKind::kText, "", 0, 255, "",
        "Taken; the attribute's name says where it comes from."},
       {"onMissing", ParameterKind::kChoice, "Pass", 0, 0, "Pass|Fail",
        "What becomes of an endpoint whose value is unknown."},
       {"fallbackOnEmpty", ParameterKind::kBoolean, "false", 0, 0, "",
        "Keep everybody when nobody would be left."},
       {"algorithm.type", ParameterKind::kChoice, "", 0, 0, "threshold|range|topK|percentile",
        "The rule.", true},
       {"algorithm.threshold.operator", ParameterKind::kChoice, "LessThan", 0, 0,
        "LessThan|LessThanOrEqual|GreaterThan|GreaterThanOrEqual|Equal|NotEqual",
        "How the value compares with `value`."},
       {"algorithm.threshold.value", ParameterKind::kNumber, "0", -kMost, kMost, "",
        "What it is compared with."},
       {"algorithm.range.min", ParameterKind::kNumber, "0", -kMost, kMost, "",
        "Least that is kept."},
       {"algorithm.range.max", ParameterKind::kNumber, "0", -kMost, kMost, "",
        "Most that is kept."},
       {"algorithm.topK.k", ParameterKind::kInteger, "1", 1, 4095, "", "How many are kept."},
       {"algorithm.topK.higherIsBetter", ParameterKind::kBoolean, "true", 0, 0, "",
        "The greatest are the best."},
       {"algorithm.percentile.percentile", ParameterKind::kNumber, "50", 0, 100, "",
        "Where the cut is."},
       {"algorithm.percentile.higherIsBetter", ParameterKind::kBoolean, "true", 0, 0, "",
        "Keep what is at or above the cut; else at or below."}},
      make};
}

}  // namespace pickd::pick

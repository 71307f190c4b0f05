// prefix-cache-affinity-filter: keeps endpoints that hold most of the prompt, until they are so
// much busier than the others that their cache no longer pays.
#include <algorithm>
#include <limits>

#include "daemon/pick/parameters.hpp"
#include "daemon/pick/slo_view.hpp"

namespace pickd::pick {

namespace {

constexpr float kMsPerS = 1000.0F;
constexpr ColumnSet kPredictedColumns = columns_of(Column::kPredictedTtft) | SloView::kColumns;

class PrefixCacheAffinityFilter final : public Filter {
 public:
  PrefixCacheAffinityFilter(double threshold, double exploration, double penalty_ms,
                            double tokens_per_s, bool predicted)
      : threshold_(static_cast<float>(threshold)),
        exploration_(exploration),
        penalty_ms_(static_cast<float>(penalty_ms)),
        ms_per_token_(kMsPerS / static_cast<float>(tokens_per_s)),
        predicted_(predicted) {}

  ColumnSet columns(ColumnSet) const override {
    const ColumnSet counted = columns_of(Column::kMatchBlocks, Column::kInflightTokens);
    return predicted_ ? counted | kPredictedColumns : counted;
  }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    const std::size_t total = context.request.keys.size();
    if (total == 0) return;
    if (exploration_ > 0 &&
        static_cast<double>(context.random.next() >> 11) * 0x1.0p-53 < exploration_) {
      return;
    }
    const auto matches = context.candidates.column(Column::kMatchBlocks);
    // Without a model to trust the tokens in flight say how long a request waits.
    const bool predicted = predicted_ && SloView(context).ttft_ready();
    const auto waits =
        context.candidates.column(predicted ? Column::kPredictedTtft : Column::kInflightTokens);
    const float ms_each = predicted ? kMsPerS : ms_per_token_;
    float sticky_ms = std::numeric_limits<float>::infinity();
    float other_ms = std::numeric_limits<float>::infinity();
    for (std::size_t at = 0; at < keep.size(); ++at) {
      keep[at] = matches[at] / static_cast<float>(total) >= threshold_;
      float& best_ms = keep[at] != 0 ? sticky_ms : other_ms;
      best_ms = std::min(best_ms, waits[at] * ms_each);
    }
    const bool nobody = sticky_ms == std::numeric_limits<float>::infinity();
    // Without others the difference is minus infinity: nobody to go to.
    const bool too_busy = penalty_ms_ > 0 && sticky_ms - other_ms > penalty_ms_;
    if (nobody || too_busy) std::fill(keep.begin(), keep.end(), std::uint8_t{1});
  }

 private:
  float threshold_;
  double exploration_;
  float penalty_ms_;
  float ms_per_token_;
  bool predicted_;
};

}  // namespace

PluginInfo describe_prefix_cache_affinity_filter() {
  return {
      "prefix-cache-affinity-filter",
      PluginKind::kFilter,
      columns_of(Column::kMatchBlocks, Column::kInflightTokens) | kPredictedColumns,
      "Keeps endpoints that hold most of the prompt, unless all of them are much busier than "
      "the best of the others.",
      "kept: match / total blocks >= affinityThreshold; everybody when none is, with "
      "explorationProbability, or when the least TTFT of these exceeds that of the others by more "
      "than maxTTFTPenaltyMs; TTFT = in-flight tokens / peakPrefillThroughput, or as predicted",
      {{"affinityThreshold", ParameterKind::kNumber, "0.8", 0, 1, "",
        "Share of the prompt's blocks that makes an endpoint stick."},
       {"explorationProbability", ParameterKind::kNumber, "0", 0, 1, "",
        "How often everybody is kept all the same."},
       {"maxTTFTPenaltyMs", ParameterKind::kNumber, "18000", 0, 1e9, "",
        "Wait in milliseconds that a cached prefix is worth; 0: any."},
       {"ttftSource", ParameterKind::kChoice, "prefillThroughput", 0, 0,
        "prefillThroughput|latencyPredictor",
        "Where the TTFT is from: tokens in flight over peakPrefillThroughput, or predicted; "
        "while no model is ready the former holds."},
       {"peakPrefillThroughput", ParameterKind::kNumber, "15928", 1e-3, 1e12, "",
        "Tokens a second that an engine prefills."},
       {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one prefix table."},
       {"inFlightLoadProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one count of its own requests."}},
      [](Parameters& parameters) -> std::unique_ptr<Plugin> {
        const double threshold = parameters.number("affinityThreshold");
        const double exploration = parameters.number("explorationProbability");
        const double penalty_ms = parameters.number("maxTTFTPenaltyMs");
        return std::make_unique<PrefixCacheAffinityFilter>(
            threshold, exploration, penalty_ms, parameters.number("peakPrefillThroughput"),
            parameters.choice("ttftSource") == "latencyPredictor");
      }};
}

}  // namespace pickd::pick

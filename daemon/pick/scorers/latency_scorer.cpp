// latency-scorer: by what would be left of the latency that the request wants.
#include <algorithm>
#include <cmath>

#include "daemon/pick/composite.hpp"
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/slo_view.hpp"

namespace pickd::pick {

namespace {

struct Settings {
  float ttft_weight;  // both sum to 1
  float itl_weight;
  bool most;
  CompositeWeights composite;
};

class LatencyScorer final : public Scorer {
 public:
  explicit LatencyScorer(const Settings& settings) : settings_(settings) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const SloView view(context);
    if (!view.ready()) {
      score_composite(context, settings_.composite, scores);
    } else if (!view.wanted()) {
      score_quickest(context, scores);
    } else {
      score_headroom(context, view, scores);
    }
    return true;
  }

 private:
  // Nothing was asked for: the quickest, each latency against the best there is.
  void score_quickest(const PickContext& context, std::span<float> scores) const {
    const auto ttft = context.candidates.column(Column::kPredictedTtft);
    const auto itl = context.candidates.column(Column::kPredictedItl);
    const float ttft_s = least(ttft);
    const float itl_s = least(itl);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (std::isnan(ttft[at]) || std::isnan(itl[at])) continue;
      scores[at] = settings_.ttft_weight * ratio(ttft_s, ttft[at]) +
                   settings_.itl_weight * ratio(itl_s, itl[at]);
    }
  }

  // In time before late; of the late ones the idle before the busy.
  void score_headroom(const PickContext& context, const SloView& view,
                      std::span<float> scores) const {
    const auto inflight = context.candidates.column(Column::kInflightRequests);
    bool anybody = false;
    bool idle = false;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      anybody |= view.in_time(at);
      idle |= inflight[at] == 0;
    }
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (anybody) {
        scores[at] = view.in_time(at) ? of_slack(view, at) : 0;
      } else {
        scores[at] = idle && inflight[at] != 0 ? 0 : of_deficit(view, at);
      }
    }
  }

  // Shares of what was wanted, so that seconds of one and milliseconds of the other compare.
  // What is in time never scores 0: that is for those who are not.
  float of_slack(const SloView& view, std::size_t at) const {
    const float left = settings_.ttft_weight * std::min(view.ttft_share(at), 1.0F) +
                       settings_.itl_weight * std::min(view.itl_share(at), 1.0F);
    return kScoreMin + (1 - kScoreMin) * (settings_.most ? left : 1 - left);
  }
  // "least": who misses by the least. "most": who misses by the most: where a request is late
  // whatever is done, it goes where everything is late already, and the others can recover.
  float of_deficit(const SloView& view, std::size_t at) const {
    const float missed = settings_.ttft_weight * std::max(-view.ttft_share(at), 0.0F) +
                         settings_.itl_weight * std::max(-view.itl_share(at), 0.0F);
    const float close = 1 / (1 + missed);
    return kScoreMin + (1 - kScoreMin) * (settings_.most ? 1 - close : close);
  }

  static float least(std::span<const float> values) {
    float found = std::numeric_limits<float>::infinity();
    for (const float value : values) {
      if (!std::isnan(value)) found = std::min(found, value);
    }
    return found;
  }
  static float ratio(float least, float value) { return value > least ? least / value : 1; }

  static constexpr float kScoreMin = .01F;

  Settings settings_;
};

std::unique_ptr<Plugin> make(Parameters& parameters) {
  const bool both = parameters.has("itlWeight") && parameters.has("tpotWeight");
  if (both) parameters.refuse("tpotWeight", "is another name of itlWeight; say one");
  const double ttft = parameters.number("ttftWeight");
  const double own = parameters.number("itlWeight");
  const double alias = parameters.number("tpotWeight");
  const double itl = parameters.has("tpotWeight") ? alias : own;
  const double sum = ttft + itl;
  Settings settings{};
  settings.ttft_weight = sum > 0 ? static_cast<float>(ttft / sum) : 1;
  settings.itl_weight = 1 - settings.ttft_weight;
  settings.most = parameters.choice("headroomSelectionStrategy") == "most";
  settings.composite = {parameters.number("compositeKVWeight"),
                        parameters.number("compositeQueueWeight"),
                        parameters.number("compositePrefixWeight")};
  return std::make_unique<LatencyScorer>(settings);
}

}  // namespace

PluginInfo describe_latency_scorer() {
  return {
      "latency-scorer",
      PluginKind::kScorer,
      SloView::kColumns | kCompositeColumns |
          columns_of(Column::kPredictedTtft, Column::kPredictedItl),
      "Prefers endpoints that are predicted to serve the request in time, by what would be left of "
      "the TTFT and ITL that it wants; without any wish, the quickest.",
      "in time: 1 - left (least) or left (most), left = ttftWeight x TTFT headroom / SLO + "
      "itlWeight x ITL headroom / SLO; nobody in time: idle ones alone where there are any, 1 / (1 "
      "+ missed) (least) or its complement (most), missed likewise; nothing wanted: ttftWeight x "
      "lowest TTFT / TTFT + itlWeight x lowest ITL / ITL; no model that is ready: composite of "
      "KV use, queue and prefix match, and the reason of the pick is \"unpredicted\"",
      {{"ttftWeight", ParameterKind::kNumber, "0.8", 0, 1e6, "", "Weight of TTFT."},
       {"itlWeight", ParameterKind::kNumber, "0.2", 0, 1e6, "",
        "Weight of ITL. Both 0: TTFT alone."},
       {"tpotWeight", ParameterKind::kNumber, "0.2", 0, 1e6, "", "Another name of itlWeight."},
       {"headroomSelectionStrategy", ParameterKind::kChoice, "least", 0, 0, "least|most",
        "least: the tightest fit, or the smallest miss. most: the greatest headroom; where all "
        "miss, the one that misses by most, so that the others recover."},
       {"compositeKVWeight", ParameterKind::kNumber, "1", 0, 1e6, "",
        "Of the composite score: weight of free KV cache."},
       {"compositeQueueWeight", ParameterKind::kNumber, "1", 0, 1e6, "",
        "Of the composite score: weight of a short queue."},
       {"compositePrefixWeight", ParameterKind::kNumber, "1", 0, 1e6, "",
        "Of the composite score: weight of the prefix match."},
       {"latencyPredictionInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one predictor."},
       {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one prefix table."}},
      make};
}

}  // namespace pickd::pick

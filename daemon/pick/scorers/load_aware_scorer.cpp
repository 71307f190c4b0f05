// load-aware-scorer: half a point for an empty queue, falling to nothing at a queue of `threshold`.
#include <algorithm>
#include <cmath>

#include "daemon/pick/parameters.hpp"
#include "daemon/pick/scorers/least.hpp"

namespace pickd::pick {

namespace {

class LoadAwareScorer final : public Scorer {
 public:
  explicit LoadAwareScorer(std::uint64_t threshold) : threshold_(static_cast<float>(threshold)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    auto waiting = context.candidates.column(Column::kWaiting);
    if (none_known(waiting)) waiting = context.candidates.column(Column::kInflightRequests);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (std::isnan(waiting[at])) continue;
      scores[at] = 0.5F * (1.0F - std::min(waiting[at], threshold_) / threshold_);
    }
    return true;
  }

 private:
  float threshold_;
};

}  // namespace

PluginInfo describe_load_aware_scorer() {
  return {"load-aware-scorer",
          PluginKind::kScorer,
          columns_of(Column::kWaiting, Column::kInflightRequests),
          "Prefers endpoints with a short queue, by its absolute length.",
          "0.5 when nothing waits, else 0.5 (1 - min(waiting, threshold) / threshold); by our own "
          "requests in flight when no engine tells",
          {{"threshold", ParameterKind::kInteger, "128", 1, 1e9, "",
            "Queue length from which the score is 0."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<LoadAwareScorer>(parameters.integer("threshold"));
          }};
}

}  // namespace pickd::pick

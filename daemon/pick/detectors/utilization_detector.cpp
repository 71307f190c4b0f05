// utilization-detector: a pool is saturated when its engines' queues or KV caches are full on
// average. In a profile it drops those that are full.
#include <algorithm>
#include <cmath>

#include "daemon/pick/detector.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class UtilizationDetector final : public Detector {
 public:
  UtilizationDetector(double queue, double kv, double headroom)
      : queue_(static_cast<float>(queue)),
        kv_(static_cast<float>(kv)),
        headroom_(static_cast<float>(headroom)) {}

  // The mean of those that tell anything: an endpoint nobody has scraped yet is neither full nor
  // idle, and a pool of such ones is not saturated.
  double saturation(const Candidates& candidates) const override {
    const auto waiting = candidates.column(Column::kWaiting);
    const auto kv_use = candidates.column(Column::kKvUse);
    double sum = 0;
    std::size_t known = 0;
    for (std::size_t at = 0; at < candidates.count; ++at) {
      if (std::isnan(waiting[at]) && std::isnan(kv_use[at])) continue;
      // fmax passes over what is unknown.
      sum += static_cast<double>(std::fmax(waiting[at] / queue_, kv_use[at] / kv_));
      ++known;
    }
    return known == 0 ? 0.0 : sum / static_cast<double>(known);
  }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    const auto waiting = context.candidates.column(Column::kWaiting);
    const auto kv_use = context.candidates.column(Column::kKvUse);
    const float queue_most = queue_ * (1 + headroom_);
    const float kv_most = kv_ * (1 + headroom_);
    bool anybody = false;
    for (std::size_t at = 0; at < keep.size(); ++at) {
      keep[at] = !(waiting[at] > queue_most) && !(kv_use[at] > kv_most);
      anybody |= keep[at] != 0;
    }
    if (!anybody) std::fill(keep.begin(), keep.end(), std::uint8_t{1});
  }

 private:
  float queue_;
  float kv_;
  float headroom_;
};

}  // namespace

PluginInfo describe_utilization_detector() {
  return {"utilization-detector",
          PluginKind::kDetector,
          columns_of(Column::kWaiting, Column::kKvUse),
          "Saturated when queues or KV caches are full on average. In a profile: drops endpoints "
          "that are full; everybody stays when all are.",
          "mean over endpoints that tell of max(waiting / queueDepthThreshold, KV use / "
          "kvCacheUtilThreshold); saturated from 1 on; as a filter: kept while both are at most "
          "their threshold x (1 + headroom)",
          {{"queueDepthThreshold", ParameterKind::kInteger, "5", 1, 1e9, "",
            "Requests waiting of a full endpoint."},
           {"kvCacheUtilThreshold", ParameterKind::kNumber, "0.8", 0.01, 1, "",
            "Share of the KV cache in use of a full endpoint."},
           {"headroom", ParameterKind::kNumber, "0", 0, 100, "",
            "How far above the thresholds the filter goes."},
           {"metricsStalenessThreshold", ParameterKind::kDuration, "200ms", 0, 86'400'000, "",
            "Taken without effect: what a stale scrape told counts as unknown, see `scrape`."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const auto queue = static_cast<double>(parameters.integer("queueDepthThreshold"));
            const double kv = parameters.number("kvCacheUtilThreshold");
            return std::make_unique<UtilizationDetector>(queue, kv, parameters.number("headroom"));
          }};
}

}  // namespace pickd::pick

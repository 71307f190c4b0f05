// slo-headroom-tier-filter: keeps endpoints that are predicted to serve the request in time.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/slo_view.hpp"

namespace pickd::pick {

namespace {

class SloHeadroomTierFilter final : public Filter {
 public:
  explicit SloHeadroomTierFilter(double exploration) : exploration_(exploration) {}

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    const SloView view(context);
    if (!view.wanted()) return;
    std::size_t in_time = 0;
    for (std::size_t at = 0; at < keep.size(); ++at) in_time += view.in_time(at) ? 1 : 0;
    if (in_time == 0 || in_time == keep.size()) return;
    const bool explore = exploration_ > 0 &&
                         static_cast<double>(context.random.next() >> 11) * 0x1p-53 < exploration_;
    for (std::size_t at = 0; at < keep.size(); ++at) keep[at] = view.in_time(at) != explore;
  }

 private:
  double exploration_;
};

}  // namespace

PluginInfo describe_slo_headroom_tier_filter() {
  return {"slo-headroom-tier-filter",
          PluginKind::kFilter,
          SloView::kColumns,
          "Keeps endpoints that are predicted to serve the request within the TTFT and ITL that it "
          "wants, and within the ITL that requests running there want.",
          "kept: TTFT and ITL headroom >= 0; with epsilonExploreNeg the others instead; everybody "
          "where all or none are in time, nothing is wanted or no model is ready",
          {{"epsilonExploreNeg", ParameterKind::kNumber, "0.01", 0, 1, "",
            "How often those are kept that are predicted to be late."},
           {"latencyPredictionInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one predictor."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<SloHeadroomTierFilter>(parameters.number("epsilonExploreNeg"));
          }};
}

}  // namespace pickd::pick

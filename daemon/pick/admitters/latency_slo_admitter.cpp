// latency-slo-admitter: sheds requests of negative priority that nobody can serve in time.
#include "daemon/pick/admitter.hpp"
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/slo_view.hpp"

namespace pickd::pick {

namespace {

class LatencySloAdmitter final : public Admitter {
 public:
  bool admits(const PickContext& context) const override {
    if (context.request.priority >= 0) return true;
    const SloView view(context);
    if (!view.wanted()) return true;
    const auto inflight = context.candidates.column(Column::kInflightRequests);
    for (std::size_t at = 0; at < context.candidates.count; ++at) {
      if (inflight[at] == 0 || view.in_time(at)) return true;
    }
    return false;
  }
};

}  // namespace

PluginInfo describe_latency_slo_admitter() {
  return {
      "latency-slo-admitter",
      PluginKind::kAdmitter,
      SloView::kColumns | columns_of(Column::kInflightRequests),
      "Sheds requests of negative priority that no endpoint is predicted to serve in time while "
      "none is idle. Works by standing under `plugins`.",
      "shed (-EBUSY): priority < 0, a TTFT or ITL is wanted, a model is ready, and every "
      "endpoint has requests in flight and a negative headroom",
      {{"latencyPredictionInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one predictor."}},
      [](Parameters&) -> std::unique_ptr<Plugin> {
        return std::make_unique<LatencySloAdmitter>();
      }};
}

}  // namespace pickd::pick

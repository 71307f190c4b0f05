// predicted-latency-producer: how headroom is reckoned from what is predicted.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

namespace {

class PredictedLatencyProducer final : public Source {
 public:
  PredictedLatencyProducer(double buffer, bool mean) : buffer_(buffer), mean_(mean) {}

  void apply(SourceSettings& settings) const override {
    settings.slo_buffer = buffer_;
    settings.headroom_of_mean = mean_;
  }

 private:
  double buffer_;
  bool mean_;
};

constexpr std::string_view kTaken =
    "Taken; pickd predicts in process, learns from what is reported "
    "and needs no such setting.";

std::unique_ptr<Plugin> make(Parameters& parameters) {
  if (parameters.has("endpointRoleLabel") && !parameters.text("endpointRoleLabel").empty()) {
    parameters.refuse(
        "endpointRoleLabel",
        "is not supported: endpoints say their role themselves (`role:`), and classes "
        "of endpoints are told apart by pool, engine and hardware");
  }
  const double buffer = parameters.number("sloBufferFactor");
  return std::make_unique<PredictedLatencyProducer>(buffer,
                                                    parameters.choice("headroomOf") == "mean");
}

}  // namespace

PluginInfo describe_predicted_latency_producer() {
  return {
      "predicted-latency-producer",
      PluginKind::kSource,
      0,
      "How much of the TTFT and ITL that a request wants would be left at an endpoint. Made by "
      "itself.",
      "TTFT headroom = SLO - TTFT; ITL headroom = min(SLO, tightest ITL that a request running "
      "there wants) x sloBufferFactor - ITL; of what is predicted the percentile "
      "(latency.percentile), or the mean with headroomOf: mean and where no model is ready",
      {{"sloBufferFactor", ParameterKind::kNumber, "1", 0.01, 100, "",
        "What an ITL that is wanted is multiplied by: below 1 keeps a reserve."},
       {"headroomOf", ParameterKind::kChoice, "percentile", 0, 0, "percentile|mean",
        "Which prediction is held against what is wanted."},
       {"contextTTL", ParameterKind::kDuration, "5min", 1000, 86'400'000, "", kTaken},
       {"streamingMode", ParameterKind::kBoolean, "false", 0, 0, "",
        "Taken; each request says whether it streams."},
       {"endpointRoleLabel", ParameterKind::kText, "", 0, 255, "", "Must be empty."},
       {"predictInProduce", ParameterKind::kBoolean, "true", 0, 0, "", kTaken},
       {"useEncoderCacheFeatures", ParameterKind::kBoolean, "false", 0, 0, "", kTaken},
       {"samplingMean", ParameterKind::kNumber, "100", 0, 1e9, "", kTaken},
       {"maxDecodeTokenSamplesForPrediction", ParameterKind::kInteger, "20", 0, 1e9, "", kTaken},
       {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one prefix table."},
       {"inFlightLoadProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one count of its own requests."}},
      make};
}

}  // namespace pickd::pick

// active-request-scorer: our own requests in flight, relative to the busiest candidate.
#include <algorithm>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class ActiveRequestScorer final : public Scorer {
 public:
  ActiveRequestScorer(std::uint64_t idle_threshold, double busy_score_max)
      : idle_threshold_(static_cast<float>(idle_threshold)),
        busy_score_max_(static_cast<float>(busy_score_max)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto inflight = context.candidates.column(Column::kInflightRequests);
    float most = 0;
    for (const float requests : inflight) most = std::max(most, requests);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      scores[at] =
          inflight[at] <= idle_threshold_ ? 1.0F : (most - inflight[at]) / most * busy_score_max_;
    }
    return true;
  }

 private:
  float idle_threshold_;
  float busy_score_max_;
};

}  // namespace

PluginInfo describe_active_request_scorer() {
  return {"active-request-scorer",
          PluginKind::kScorer,
          columns_of(Column::kInflightRequests),
          "Prefers endpoints with fewer requests of ours in flight.",
          "1 when n <= idleThreshold, else (max - n) / max x maxBusyScore",
          {{"idleThreshold", ParameterKind::kInteger, "0", 0, 1e6, "",
            "Requests up to which an endpoint counts as idle."},
           {"maxBusyScore", ParameterKind::kNumber, "1", 0, 1, "",
            "Score of the least busy endpoint that is not idle."},
           {"inFlightLoadProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one count of its own requests."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const std::uint64_t idle = parameters.integer("idleThreshold");
            const double busy = parameters.number("maxBusyScore");
            return std::make_unique<ActiveRequestScorer>(idle, busy);
          }};
}

}  // namespace pickd::pick

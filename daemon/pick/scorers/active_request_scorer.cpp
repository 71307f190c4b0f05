// active-request-scorer: our own requests in flight, relative to the busiest candidate.
#include <algorithm>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/plugin.hpp"

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

std::unique_ptr<Plugin> make_active_request_scorer(config::ParameterReader& parameters) {
  const std::uint64_t idle = parameters.integer("idleThreshold", 0, 0, 1'000'000);
  const double busy = parameters.number("maxBusyScore", 1.0, 0.0, 1.0);
  return std::make_unique<ActiveRequestScorer>(idle, busy);
}

}  // namespace pickd::pick

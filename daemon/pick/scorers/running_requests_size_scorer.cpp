// running-requests-size-scorer: requests that the engine is working on, between the least and the
// most known; our own in flight where no engine tells.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/scorers/least.hpp"

namespace pickd::pick {

namespace {

class RunningRequestsSizeScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    auto running = context.candidates.column(Column::kRunning);
    if (none_known(running)) running = context.candidates.column(Column::kInflightRequests);
    score_least_first(running, scores);
    return true;
  }
};

}  // namespace

PluginInfo describe_running_requests_size_scorer() {
  return {"running-requests-size-scorer",
          PluginKind::kScorer,
          columns_of(Column::kRunning, Column::kInflightRequests),
          "Prefers endpoints whose engine runs fewer requests.",
          "(max - running) / (max - min); 1 when all are equal; by our own requests in flight when "
          "no engine tells",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> {
            return std::make_unique<RunningRequestsSizeScorer>();
          }};
}

}  // namespace pickd::pick

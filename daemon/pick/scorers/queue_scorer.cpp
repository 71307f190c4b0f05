// queue-scorer: requests waiting in the engine, between the shortest and the longest known queue;
// our own in flight where no engine tells.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/scorers/least.hpp"

namespace pickd::pick {

namespace {

class QueueScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    auto waiting = context.candidates.column(Column::kWaiting);
    // Nobody tells its queue: what we have in flight there is the next best. Without this the other
    // scorers, and with them the longest match, would decide alone.
    if (none_known(waiting)) waiting = context.candidates.column(Column::kInflightRequests);
    score_least_first(waiting, scores);
    return true;
  }
};

}  // namespace

PluginInfo describe_queue_scorer() {
  return {"queue-scorer",
          PluginKind::kScorer,
          columns_of(Column::kWaiting, Column::kInflightRequests),
          "Prefers endpoints whose engine has fewer requests waiting.",
          "(max - waiting) / (max - min); 1 when all are equal; by our own requests in flight when "
          "no engine tells",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<QueueScorer>(); }};
}

}  // namespace pickd::pick

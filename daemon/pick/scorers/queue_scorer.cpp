// queue-scorer: requests waiting in the engine, between the shortest and the longest known queue;
// our own in flight where no engine tells.
#include <algorithm>
#include <cmath>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

class QueueScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    auto waiting = context.candidates.column(Column::kWaiting);
    const bool none_told =
        std::all_of(waiting.begin(), waiting.end(), [](float queue) { return std::isnan(queue); });
    // Nobody tells its queue: what we have in flight there is the next best. Without this the other
    // scorers, and with them the longest match, would decide alone.
    if (none_told) waiting = context.candidates.column(Column::kInflightRequests);
    float shortest = std::numeric_limits<float>::infinity();
    float longest = 0;
    for (const float queue : waiting) {  // an unknown queue enters neither
      if (std::isnan(queue)) continue;
      shortest = std::min(shortest, queue);
      longest = std::max(longest, queue);
    }
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (std::isnan(waiting[at])) continue;
      scores[at] = longest == shortest ? 1.0F : (longest - waiting[at]) / (longest - shortest);
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_queue_scorer(config::ParameterReader&) {
  return std::make_unique<QueueScorer>();
}

}  // namespace pickd::pick

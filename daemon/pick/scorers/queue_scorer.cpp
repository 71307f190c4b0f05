// queue-scorer: requests waiting in the engine, between the shortest and the longest known queue.
#include <algorithm>
#include <cmath>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

class QueueScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto waiting = context.candidates.column(Column::kWaiting);
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

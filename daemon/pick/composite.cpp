#include "daemon/pick/composite.hpp"

#include <algorithm>
#include <cmath>

namespace pickd::pick {

namespace {

struct Range {
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();
  bool known() const { return least <= most; }
};

Range range_of(std::span<const float> values) {
  Range range;
  for (const float value : values) {
    if (std::isnan(value)) continue;
    range.least = std::min(range.least, value);
    range.most = std::max(range.most, value);
  }
  return range;
}

}  // namespace

void score_composite(const PickContext& context, const CompositeWeights& weights,
                     std::span<float> scores) {
  if (context.notes != nullptr) context.notes->unpredicted = true;
  const Candidates& candidates = context.candidates;
  const auto kv_use = candidates.column(Column::kKvUse);
  const auto matches = candidates.column(Column::kMatchBlocks);
  auto queue = candidates.column(Column::kWaiting);
  Range queues = range_of(queue);
  if (!queues.known()) {
    queue = candidates.column(Column::kInflightRequests);
    queues = range_of(queue);
  }
  const Range kv = range_of(kv_use);
  const double sum = weights.kv + weights.queue + weights.prefix;
  const CompositeWeights used =
      sum > 0 ? CompositeWeights{weights.kv / sum, weights.queue / sum, weights.prefix / sum}
              : CompositeWeights{1, 0, 0};
  const auto blocks = static_cast<double>(context.request.keys.size());
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const double in_use = std::isnan(kv_use[at]) ? (kv.known() ? kv.most : 0) : kv_use[at];
    const double waiting = std::isnan(queue[at]) ? queues.most : queue[at];
    const double room =
        queues.most > queues.least ? (queues.most - waiting) / (queues.most - queues.least) : 1;
    const double match = blocks > 0 ? matches[at] / blocks : 0;
    scores[at] =
        static_cast<float>(used.kv * (1 - in_use) + used.queue * room + used.prefix * match);
  }
}

}  // namespace pickd::pick

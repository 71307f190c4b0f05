// The composite score: KV cache in use, queue and prefix match together, without any prediction.
// It is the Endpoint Picker's, and stands in for predictions where there is no model to trust.
#pragma once

#include <span>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

struct CompositeWeights {
  double kv = 1;
  double queue = 1;
  double prefix = 1;
};

inline constexpr ColumnSet kCompositeColumns =
    columns_of(Column::kKvUse, Column::kWaiting, Column::kInflightRequests, Column::kMatchBlocks);

// Scores all candidates, 0..1:
//   kv (1 - KV use) + queue (most - waiting) / (most - least) + prefix match / total blocks,
// the weights made to sum to 1; all of them 0: KV use alone. What an engine does not tell counts as
// with the worst of the others; where none tells how many wait, requests in flight count.
// Says in the context's notes that nothing was predicted.
void score_composite(const PickContext& context, const CompositeWeights& weights,
                     std::span<float> scores);

}  // namespace pickd::pick

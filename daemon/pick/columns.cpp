#include "daemon/pick/columns.hpp"

namespace pickd::pick {

const char* column_name(Column column) {
  switch (column) {
    case Column::kMatchBlocks: return "match blocks";
    case Column::kUncachedTokens: return "uncached tokens";
    case Column::kInflightRequests: return "in-flight requests";
    case Column::kInflightTokens: return "in-flight tokens";
    case Column::kInflightPrompts: return "in-flight prompt tokens";
    case Column::kWaiting: return "waiting";
    case Column::kRunning: return "running";
    case Column::kKvUse: return "KV use";
    case Column::kAdapter: return "adapter";
    case Column::kSession: return "session";
    case Column::kPredictedTtft: return "predicted time to the first token";
    case Column::kPredictedItl: return "predicted time between tokens";
    case Column::kCost: return "predicted cost";
    case Column::kTtftPercentile: return "percentile of the time to the first token";
    case Column::kItlPercentile: return "percentile of the time between tokens";
    case Column::kTtftHeadroom: return "headroom of the time to the first token";
    case Column::kItlHeadroom: return "headroom of the time between tokens";
    case Column::kMissesOfOthers: return "misses of others";
    case Column::kCount: break;
  }
  return "";
}

void Candidates::compact(ColumnSet produced) {
  Arrays& arrays = *arrays_;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < count; ++at) {
    if (arrays.keep[at] == 0) continue;
    if (kept != at) {
      arrays.ids[kept] = arrays.ids[at];
      arrays.latency_classes[kept] = arrays.latency_classes[at];
      arrays.lives[kept] = arrays.lives[at];
      arrays.endpoints[kept] = arrays.endpoints[at];
      arrays.match_blocks[kept] = arrays.match_blocks[at];
      for (std::size_t column = 0; column < kColumns; ++column) {
        if ((produced >> column & 1) != 0)
          arrays.columns[column][kept] = arrays.columns[column][at];
      }
    }
    ++kept;
  }
  count = kept;
}

}  // namespace pickd::pick

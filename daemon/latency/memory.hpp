// What a learner knows, as plain numbers that outlive it.
#pragma once

#include <cstdint>

#include "daemon/latency/accuracy.hpp"
#include "daemon/latency/features.hpp"
#include "daemon/latency/linear_model.hpp"

namespace pickd::latency {

// Doubles only: it is written and read as a row of them.
struct ClassMemory {
  LinearModel<kTtftFeatures>::Memory ttft;
  LinearModel<kItlFeatures>::Memory itl;
  // Sums over answers and picks, of what a mean request is made.
  double output_sum;
  double output_weight;
  double pick_weight;
  double uncached_sum;
  double work_sum;
  double kv_sum;
  Accuracy::Memory ttft_accuracy;
  Accuracy::Memory itl_accuracy;
  Accuracy::Memory itl_given_accuracy;
};

struct EndpointMemory {
  double log_ratio = 0;     // of slowness
  double evidence_s = 0;    // predicted time it was learned from
  double queued_share = 0;  // of the time, with somebody without a first token
};

}  // namespace pickd::latency

// What an operator may say about learning. The defaults suit requests that take seconds.
#pragma once

#include <cstdint>

namespace pickd::latency {

struct LearnerOptions {
  double memory_samples = 500;     // how many the models and their errors look back on, about
  std::uint64_t samples_min = 20;  // before a model may count as ready
  double output_tokens = 200;      // of an answer, until answers were reported
  double percentile = 90;          // that predictions name beside the mean

  // What remains of a sum when a sample is added to it.
  double decay() const { return 1 - 1 / memory_samples; }
};

}  // namespace pickd::latency

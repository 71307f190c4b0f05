// Accuracy: how right the predictions of one class are, live: error, bias, the share below the
// predicted percentile, and whether the model beats the mean of what was measured lately.
//
// One thread. All are exponentially weighted over about the last 500 samples, or as many as are
// asked for.
#pragma once

#include <cstdint>

#include "daemon/latency/learner_options.hpp"

namespace pickd::latency {

class Accuracy {
 public:
  explicit Accuracy(const LearnerOptions& options = {})
      : decay_(options.decay()),
        samples_min_(options.samples_min),
        percentile_(options.percentile / 100) {}

  // What is kept over a restart: plain numbers.
  struct Memory {
    double numbers[11];
  };
  Memory memory() const;
  // False: the numbers are not sound, nothing changed.
  bool restore(const Memory& kept);

  // Pairs a prediction, made at the pick, with its outcome; seconds.
  void add(double predicted_s, double measured_s);

  std::uint64_t samples() const { return samples_; }
  double mape() const;      // mean of |predicted - measured| / measured; 0 without samples
  double bias() const;      // mean of (predicted - measured) over mean measured
  double coverage() const;  // share of outcomes at or below predicted * p90_factor()
  // The 90th percentile (or the one asked for) of measured / predicted, tracked.
  double p90_factor() const { return p90_factor_; }
  // Enough samples, and closer than saying the running mean each time.
  bool ready() const;
  // The error of late is far above that of before: the engine or its load changed its nature.
  bool drifting() const;

 private:
  double decay_;
  std::uint64_t samples_min_;
  double percentile_;  // as a share
  std::uint64_t samples_ = 0;
  double weight_ = 0;
  double relative_error_ = 0;
  double error_ = 0;       // absolute, of the model
  double mean_error_ = 0;  // absolute, of the running mean
  double signed_error_ = 0;
  double measured_ = 0;
  double below_ = 0;
  double recent_weight_ = 0;
  double recent_relative_error_ = 0;
  double p90_factor_ = 1.3;
};

}  // namespace pickd::latency

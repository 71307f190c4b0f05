// Slowness: how much slower an endpoint is than its class, learned from what it delivered.
//
// Two pairs of decaying sums of measured and of predicted time, one quick and one slow; when they
// disagree by much the slow one takes over what the quick one holds, so that an endpoint that
// changes is believed within seconds. One thread; time is an argument.
#pragma once

#include <cstdint>

namespace pickd::latency {

class Slowness {
 public:
  // `measured_s` against `predicted_s`, which knows nothing of this endpoint's slowness.
  void add(double measured_s, double predicted_s, double now_s);

  // The logarithm of what was measured over what was predicted, shrunk toward 0 while little is
  // known, within +-ln 8. The fleet's mean is still in it.
  double log_ratio() const;

  // The factor for a log ratio from which the mean of the endpoints was taken: 1 within the dead
  // band, so that noise does not move picks.
  static double factor(double log_ratio_over_mean);

  // What it was learned from: seconds of predicted time that still weigh.
  double evidence_s() const { return slow_.predicted; }
  // As if so much evidence had told this ratio.
  void restore(double log_ratio, double evidence_s, double now_s);

  std::uint64_t samples() const { return samples_; }
  void forget() { *this = Slowness(); }

 private:
  struct Sums {
    double measured = 0;
    double predicted = 0;
    double samples = 0;

    void decay(double elapsed_s, double time_constant_s);
    void add(double measured_s, double predicted_s);
    double log_ratio() const;
  };

  Sums fast_;
  Sums slow_;
  double at_s_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace pickd::latency

// TimesSeen: predicted and measured times of requests as histograms, for metrics. The learner's
// thread adds, any thread reads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "daemon/base/histogram.hpp"

namespace pickd::latency {

inline constexpr std::array<std::uint64_t, 14> kTtftUsBounds = {
    5'000,   10'000,    20'000,    40'000,    60'000,    100'000,    200'000,
    400'000, 1'000'000, 2'000'000, 4'000'000, 8'000'000, 16'000'000, 60'000'000};
inline constexpr base::HistogramShape kTtftSecondsShape{kTtftUsBounds, 1e-6};

inline constexpr std::array<std::uint64_t, 10> kItlUsBounds = {
    2'000, 5'000, 10'000, 20'000, 40'000, 60'000, 100'000, 200'000, 500'000, 1'000'000};
inline constexpr base::HistogramShape kItlSecondsShape{kItlUsBounds, 1e-6};

// Predicted over measured, in thousandths: 1000 is right.
inline constexpr std::array<std::uint64_t, 11> kRatioBounds = {250,  500,  670,  800,  900, 1000,
                                                               1100, 1250, 1500, 2000, 4000};
inline constexpr base::HistogramShape kRatioShape{kRatioBounds, 1e-3};

class TimesSeen {
 public:
  base::Histogram<kTtftUsBounds> ttft;
  base::Histogram<kTtftUsBounds> predicted_ttft;
  base::Histogram<kRatioBounds> ttft_ratio;
  base::Histogram<kItlUsBounds> itl;
  base::Histogram<kItlUsBounds> predicted_itl;
  base::Histogram<kRatioBounds> itl_ratio;

  // Seconds, of one request, both above 0.
  void add_ttft(double predicted_s, double measured_s) {
    predicted_ttft.add(micros(predicted_s));
    ttft.add(micros(measured_s));
    ttft_ratio.add(thousandths(predicted_s / measured_s));
  }
  void add_itl(double predicted_s, double measured_s) {
    predicted_itl.add(micros(predicted_s));
    itl.add(micros(measured_s));
    itl_ratio.add(thousandths(predicted_s / measured_s));
  }

 private:
  static std::uint64_t whole(double value) {
    constexpr double kMost = 1e12;  // a sum of many stays a sum
    return value > 0 ? static_cast<std::uint64_t>(std::lround(std::min(value, kMost))) : 0;
  }
  static std::uint64_t micros(double seconds) { return whole(seconds * 1e6); }
  static std::uint64_t thousandths(double ratio) { return whole(ratio * 1e3); }
};

}  // namespace pickd::latency

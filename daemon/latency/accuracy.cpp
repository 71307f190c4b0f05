#include "daemon/latency/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace pickd::latency {

namespace {

constexpr double kRecentDecay = .98;  // about the last 50
constexpr std::uint64_t kDriftSamplesMin = 200;
constexpr double kDriftFactor = 2;
constexpr double kFactorMin = .5;  // of the tracked percentile
constexpr double kFactorMax = 20;
constexpr double kMeasuredMin = 1e-4;  // seconds; shorter ones would dominate a relative error

}  // namespace

void Accuracy::add(double predicted_s, double measured_s) {
  if (!std::isfinite(predicted_s) || !std::isfinite(measured_s) || predicted_s <= 0 ||
      measured_s <= 0) {
    return;
  }
  const double mean = weight_ > 0 ? measured_ / weight_ : measured_s;
  const double relative = std::abs(predicted_s - measured_s) / std::max(measured_s, kMeasuredMin);
  const auto mix = [this](double& sum, double value) { sum = decay_ * sum + value; };
  mix(mean_error_, std::abs(mean - measured_s));
  mix(error_, std::abs(predicted_s - measured_s));
  mix(signed_error_, predicted_s - measured_s);
  mix(relative_error_, relative);
  mix(measured_, measured_s);
  mix(below_, measured_s <= predicted_s * p90_factor_ ? 1 : 0);
  mix(weight_, 1);
  recent_relative_error_ = kRecentDecay * recent_relative_error_ + relative;
  recent_weight_ = kRecentDecay * recent_weight_ + 1;
  ++samples_;
  // A quantile by stochastic steps: at the 90th percentile up by 9 parts when the outcome lies
  // above, down by 1 below.
  const double step = samples_ < 200 ? .02 : .005;
  p90_factor_ *=
      std::exp(step * (measured_s > predicted_s * p90_factor_ ? percentile_ : percentile_ - 1));
  p90_factor_ = std::clamp(p90_factor_, kFactorMin, kFactorMax);
}

Accuracy::Memory Accuracy::memory() const {
  return {{static_cast<double>(samples_), weight_, relative_error_, error_, mean_error_,
           signed_error_, measured_, below_, recent_weight_, recent_relative_error_, p90_factor_}};
}

bool Accuracy::restore(const Memory& kept) {
  constexpr std::size_t kSigned = 5;  // the bias alone may be below 0
  constexpr double kMost = 1e15;
  for (std::size_t at = 0; at < std::size(kept.numbers); ++at) {
    const double value = kept.numbers[at];
    if (!std::isfinite(value) || std::abs(value) > kMost || (at != kSigned && value < 0))
      return false;
  }
  const double factor = kept.numbers[10];
  if (factor < kFactorMin || factor > kFactorMax) return false;
  samples_ = static_cast<std::uint64_t>(kept.numbers[0]);
  weight_ = kept.numbers[1];
  relative_error_ = kept.numbers[2];
  error_ = kept.numbers[3];
  mean_error_ = kept.numbers[4];
  signed_error_ = kept.numbers[5];
  measured_ = kept.numbers[6];
  below_ = kept.numbers[7];
  recent_weight_ = kept.numbers[8];
  recent_relative_error_ = kept.numbers[9];
  p90_factor_ = factor;
  return true;
}

double Accuracy::mape() const { return weight_ > 0 ? relative_error_ / weight_ : 0; }
double Accuracy::bias() const { return measured_ > 0 ? signed_error_ / measured_ : 0; }
double Accuracy::coverage() const { return weight_ > 0 ? below_ / weight_ : 0; }

bool Accuracy::ready() const { return samples_ >= samples_min_ && error_ < mean_error_; }

bool Accuracy::drifting() const {
  if (samples_ < kDriftSamplesMin) return false;
  return recent_relative_error_ / recent_weight_ > kDriftFactor * mape();
}

}  // namespace pickd::latency

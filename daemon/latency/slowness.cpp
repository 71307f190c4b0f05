#include "daemon/latency/slowness.hpp"

#include <algorithm>
#include <cmath>

namespace pickd::latency {

namespace {

constexpr double kFastSeconds = 15;
constexpr double kSlowSeconds = 120;
constexpr double kPriorSeconds = 3;   // of prediction at a ratio of 1
constexpr double kDisagreement = .3;  // of the logarithms
constexpr double kFastSamplesMin = 4;
constexpr double kFastSecondsMin = 6;  // of prediction
constexpr double kDeadBand = .05;
const double kLogMax = std::log(8.0);

}  // namespace

void Slowness::Sums::decay(double elapsed_s, double time_constant_s) {
  if (elapsed_s <= 0) return;
  const double kept = std::exp(-elapsed_s / time_constant_s);
  measured *= kept;
  predicted *= kept;
  samples *= kept;
}

void Slowness::Sums::add(double measured_s, double predicted_s) {
  measured += measured_s;
  predicted += predicted_s;
  samples += 1;
}

double Slowness::Sums::log_ratio() const {
  return std::log((measured + kPriorSeconds) / (predicted + kPriorSeconds));
}

void Slowness::add(double measured_s, double predicted_s, double now_s) {
  if (!std::isfinite(measured_s) || !std::isfinite(predicted_s) || measured_s < 0 ||
      predicted_s <= 0) {
    return;
  }
  // One absurd answer must not make an endpoint look dead.
  const double factor_now = factor(log_ratio());
  const double capped = std::min(measured_s, 8 * factor_now * predicted_s + .5);
  fast_.decay(now_s - at_s_, kFastSeconds);
  slow_.decay(now_s - at_s_, kSlowSeconds);
  at_s_ = std::max(at_s_, now_s);
  fast_.add(capped, predicted_s);
  slow_.add(capped, predicted_s);
  ++samples_;
  if (fast_.samples >= kFastSamplesMin && fast_.predicted >= kFastSecondsMin &&
      std::abs(fast_.log_ratio() - slow_.log_ratio()) > kDisagreement) {
    slow_ = fast_;
  }
}

void Slowness::restore(double log_ratio, double evidence_s, double now_s) {
  if (!std::isfinite(log_ratio) || !std::isfinite(evidence_s) || evidence_s <= 0) return;
  const double ratio = std::exp(std::clamp(log_ratio, -kLogMax, kLogMax));
  *this = Slowness();
  slow_.predicted = evidence_s;
  slow_.measured = std::max(0.0, ratio * (evidence_s + kPriorSeconds) - kPriorSeconds);
  slow_.samples = 1;
  at_s_ = now_s;
  samples_ = 1;
}

double Slowness::log_ratio() const { return std::clamp(slow_.log_ratio(), -kLogMax, kLogMax); }

double Slowness::factor(double value) {
  if (std::abs(value) <= kDeadBand) return 1;
  const double beyond = value - kDeadBand * kDeadBand / value;
  return std::exp(std::clamp(beyond, -kLogMax, kLogMax));
}

}  // namespace pickd::latency

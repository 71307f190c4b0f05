#include "daemon/latency/coefficients.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/latency/linear_model.hpp"

namespace pickd::latency {

namespace {

bool is_rate(double value) { return std::isfinite(value) && value >= 0 && value <= kThetaMax; }

}  // namespace

bool is_sound(const ClassCoefficients& of) {
  return std::all_of(of.ttft.begin(), of.ttft.end(), is_rate) &&
         std::all_of(of.itl.begin(), of.itl.end(), is_rate) && std::isfinite(of.output_tokens) &&
         of.output_tokens >= 0;
}

bool is_sound(const Coefficients& of) {
  const auto endpoint_is_sound = [](const EndpointCoefficients& each) {
    return std::isfinite(each.slowness) && each.slowness > 0 && each.queued_share >= 0 &&
           each.queued_share <= 1;
  };
  return !of.classes.empty() &&
         std::all_of(of.classes.begin(), of.classes.end(),
                     [](const ClassCoefficients& each) { return is_sound(each); }) &&
         std::all_of(of.endpoints.begin(), of.endpoints.end(), endpoint_is_sound) &&
         std::isfinite(of.work_price) && of.work_price >= 0;
}

}  // namespace pickd::latency

// Mean and percentiles. See samples.hpp.
#include "tools/common/samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace pickd::tools {

void Samples::add(double value) {
  values_.push_back(value);
  sorted_ = false;
}

void Samples::add(const Samples& others) {
  values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  sorted_ = false;
}

double Samples::mean() const {
  if (values_.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

double Samples::percentile(double fraction) const {
  if (values_.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (!sorted_) {
    std::sort(values_.begin(), values_.end());
    sorted_ = true;
  }
  const double rank =
      std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(values_.size()));
  return values_[rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1];
}

}  // namespace pickd::tools

// Samples: numbers that were measured, and their mean and percentiles. Knows no units.
#pragma once

#include <cstddef>
#include <vector>

namespace pickd::tools {

class Samples {
 public:
  void add(double value);
  void add(const Samples& others);

  std::size_t count() const { return values_.size(); }
  double mean() const;  // NaN without samples

  // The smallest sample that at least `fraction` (0..1) of all samples do not exceed; NaN without
  // samples. Sorts on demand.
  double percentile(double fraction) const;

 private:
  mutable std::vector<double> values_;
  mutable bool sorted_ = true;
};

}  // namespace pickd::tools

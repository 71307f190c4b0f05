// A saturation detector: how full the candidates are together, and, in a profile, which of them are
// full.
#pragma once

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

class Detector : public virtual Filter {
 public:
  // 1 and more: saturated, and requests of negative priority are shed. Its columns are filled.
  virtual double saturation(const Candidates& candidates) const = 0;
};

}  // namespace pickd::pick

// An admitter says whether a request is served at all, before any profile looks at the candidates.
#pragma once

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

class Admitter : public virtual Plugin {
 public:
  // False: shed with -EBUSY. Its columns are filled, of all candidates.
  virtual bool admits(const PickContext& context) const = 0;
};

}  // namespace pickd::pick

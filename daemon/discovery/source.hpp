// Source: finds endpoints somewhere and gives whole sets of them. One class a kind of place.
//
// A source gives sets, never changes: what is not in the newest set is gone. A source that cannot
// tell right now says why and gives nothing, so that the last set stays. Everything on the
// reactor's thread; hooks are not called from inside start(). Knows no table: what becomes of a
// set is set_keeper.hpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/endpoints/endpoint_spec.hpp"

namespace pickd::discovery {

struct SourceHooks {
  // All endpoints that there are now. Names are the source's; pool, models and what the
  // configuration says for all of a pool are filled in by the keeper.
  std::function<void(std::vector<endpoints::EndpointSpec> set)> set;
  // Why the source cannot tell, or can tell only in part; empty: it can again. The last set stays.
  // May be repeated: whoever logs it says it once.
  std::function<void(const std::string& why)> trouble;
};

class Source {
 public:
  virtual ~Source() = default;
  // Once. The first set may take as long as the place takes to answer.
  virtual void start() = 0;
};

}  // namespace pickd::discovery

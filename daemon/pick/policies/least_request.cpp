// least-request: the endpoint with the fewest requests of ours in flight, ties at random. What
// general load balancers do (Envoy's least-request with a full scan), counted at the pick.
#include "daemon/pick/builtin_profiles.hpp"

namespace pickd::pick {

config::SchedulingConfig make_least_request_policy();

config::SchedulingConfig make_least_request_policy() {
  static constexpr PluginWeight kPlugins[] = {{"active-request-scorer", 1},
                                              {"max-score-picker", 1}};
  return make_scheduling("least-request", kPlugins);
}

}  // namespace pickd::pick

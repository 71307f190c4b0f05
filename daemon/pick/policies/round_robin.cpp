// round-robin: every ready endpoint in turn, whatever it holds or carries. For comparison.
#include "daemon/pick/builtin_profiles.hpp"

namespace pickd::pick {

config::SchedulingConfig make_round_robin_policy();

config::SchedulingConfig make_round_robin_policy() {
  static constexpr PluginWeight kPlugins[] = {{"round-robin-picker", 1}};
  return make_scheduling("round-robin", kPlugins);
}

}  // namespace pickd::pick

// epp-affinity: what the llm-d guides recommend since August 2026 ("sticky until saturated"):
// endpoints that hold most of the prompt, the one with the least uncached tokens ahead among them.
// Source: github.com/llm-d/llm-d-router, prefix-cache-affinity-filter, ebab68792.
#include "daemon/pick/builtin_profiles.hpp"

namespace pickd::pick {

config::SchedulingConfig make_epp_affinity_policy();

config::SchedulingConfig make_epp_affinity_policy() {
  static constexpr PluginWeight kPlugins[] = {
      {"prefix-cache-affinity-filter", 1}, {"token-load-scorer", 1}, {"max-score-picker", 1}};
  return make_scheduling("epp-affinity", kPlugins);
}

}  // namespace pickd::pick

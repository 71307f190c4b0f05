#include "daemon/pick/builtin_profiles.hpp"

#include <algorithm>

namespace pickd::pick {

// One file each, in policies/.
config::SchedulingConfig make_round_robin_policy();
config::SchedulingConfig make_least_request_policy();
config::SchedulingConfig make_epp_affinity_policy();
config::SchedulingConfig make_sglang_cache_aware_policy();
config::SchedulingConfig make_dynamo_cost_policy();
config::SchedulingConfig make_lmetric_policy();
config::SchedulingConfig make_chwbl_policy();

namespace {

config::SchedulingConfig make_prefix_load() {
  static constexpr PluginWeight kPlugins[] = {{"prefix-cache-scorer", 3},
                                              {"active-request-scorer", 2},
                                              {"token-load-scorer", 2},
                                              {"max-score-picker", 1}};
  return make_scheduling("prefix-load", kPlugins);
}

config::SchedulingConfig make_least_predicted_cost() {
  static constexpr PluginWeight kPlugins[] = {{"least-predicted-cost-scorer", 1},
                                              {"max-score-picker", 1}};
  return make_scheduling("least-predicted-cost", kPlugins);
}

// What the Endpoint Picker does when it is given no configuration (epp: queue 2, kv 2, prefix 3).
config::SchedulingConfig make_epp_default() {
  static constexpr PluginWeight kPlugins[] = {{"queue-scorer", 2},
                                              {"kv-cache-utilization-scorer", 2},
                                              {"prefix-cache-scorer", 3},
                                              {"max-score-picker", 1}};
  return make_scheduling("epp-default", kPlugins);
}

// For requests that say which latency they want.
config::SchedulingConfig make_slo() {
  static constexpr PluginWeight kPlugins[] = {{"slo-risk-scorer", 1}, {"max-score-picker", 1}};
  config::SchedulingConfig scheduling = make_scheduling("slo", kPlugins);
  for (const char* type : {"predicted-latency-producer", "latency-slo-admitter"})
    scheduling.plugins.push_back({type, type, nullptr, {}});
  return scheduling;
}

const BuiltinProfile kProfiles[] = {
    {"least-predicted-cost", "the default: fewest seconds by learned rates",
     make_least_predicted_cost},
    {"prefix-load", "prefix 3, active-request 2, token-load 2, from own counts alone",
     make_prefix_load},
    {"slo",
     "fewest requests that miss the latency they want; below priority 0 sheds what is late anyway",
     make_slo},
    {"epp-default", "the Endpoint Picker's: queue 2, kv-cache-utilization 2, prefix 3",
     make_epp_default},
    {"epp-affinity",
     "the Endpoint Picker's newer one: whoever holds most of the prompt, then least tokens ahead",
     make_epp_affinity_policy},
    {"sglang-cache-aware", "SGLang's: longest match while loads are even, else fewest requests",
     make_sglang_cache_aware_policy},
    {"dynamo-cost", "Dynamo's: fewest blocks to prefill and to decode", make_dynamo_cost_policy},
    {"lmetric", "uncached tokens times requests in flight", make_lmetric_policy},
    {"chwbl", "KubeAI's: consistent hashing of the prompt's beginning, with bounded loads",
     make_chwbl_policy},
    {"round-robin", "whoever was picked longest ago", make_round_robin_policy},
    {"least-request", "fewest requests of ours in flight", make_least_request_policy},
};

}  // namespace

std::span<const BuiltinProfile> builtin_profiles() { return kProfiles; }

const BuiltinProfile* find_builtin_profile(std::string_view name) {
  const auto* const at =
      std::find_if(std::begin(kProfiles), std::end(kProfiles),
                   [name](const BuiltinProfile& profile) { return profile.name == name; });
  return at == std::end(kProfiles) ? nullptr : at;
}

config::SchedulingConfig make_scheduling(std::string_view name,
                                         std::span<const PluginWeight> plugins) {
  config::SchedulingConfig scheduling;
  config::ProfileConfig profile;
  profile.name = name;
  for (const PluginWeight& plugin : plugins) {
    scheduling.plugins.push_back({plugin.type, plugin.type, nullptr, {}});
    profile.plugins.push_back({plugin.type, plugin.weight, {}});
  }
  scheduling.profiles.push_back(std::move(profile));
  return scheduling;
}

}  // namespace pickd::pick

// Profiles by name: the default, the Endpoint Picker's, and the policies of policies/.
#pragma once

#include <span>
#include <string_view>

#include "daemon/config/config.hpp"

namespace pickd::pick {

struct BuiltinProfile {
  std::string_view name;
  std::string_view summary;
  config::SchedulingConfig (*make)();
};

std::span<const BuiltinProfile> builtin_profiles();
const BuiltinProfile* find_builtin_profile(std::string_view name);

// Says a profile in few words: plugin types with weights, in order.
struct PluginWeight {
  const char* type;
  double weight;
};
config::SchedulingConfig make_scheduling(std::string_view name,
                                         std::span<const PluginWeight> plugins);

}  // namespace pickd::pick

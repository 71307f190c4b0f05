// From the parameters of an external plugin to its settings and a loaded instance.
#pragma once

#include <optional>

#include "daemon/pick/external/external_plugin.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

struct LoadedExternal {
  ExternalPlugin::Settings settings;
  PluginInstanceHandle instance;
};

std::vector<ParameterInfo> external_parameters();

// Nothing when there is no such library or it is refused, which goes to the errors of `parameters`.
std::optional<LoadedExternal> load_external(Parameters& parameters, PluginUse use);

}  // namespace pickd::pick

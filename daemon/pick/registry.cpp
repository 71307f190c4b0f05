// The registry of plugins. Made from plugins.def alone: a line PLUGIN(name) is the function
// describe_name() of the plugin's file.
#include <algorithm>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

#define PLUGIN(name) PluginInfo describe_##name();
#include "daemon/pick/plugins.def"
#undef PLUGIN

std::span<const PluginInfo> plugin_infos() {
  static const std::vector<PluginInfo> infos = {
#define PLUGIN(name) describe_##name(),
#include "daemon/pick/plugins.def"
#undef PLUGIN
  };
  return infos;
}

const PluginInfo* find_plugin(std::string_view type) {
  const auto infos = plugin_infos();
  const auto at = std::find_if(infos.begin(), infos.end(),
                               [type](const PluginInfo& info) { return info.type == type; });
  return at == infos.end() ? nullptr : &*at;
}

const char* kind_name(PluginKind kind) {
  switch (kind) {
    case PluginKind::kScorer: return "scorer";
    case PluginKind::kFilter: return "filter";
    case PluginKind::kPicker: return "picker";
    case PluginKind::kHandler: return "profile handler";
    case PluginKind::kDecider: return "decider";
    case PluginKind::kDetector: return "saturation detector";
    case PluginKind::kAdmitter: return "request admitter";
    case PluginKind::kSource: return "data source";
  }
  return "";
}

}  // namespace pickd::pick

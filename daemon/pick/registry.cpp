// The registry of plugins. Made from plugins.def alone.
#include <algorithm>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

#define PLUGIN(type, kind, make, columns, summary, formula) \
  std::unique_ptr<Plugin> make(config::ParameterReader& parameters);
#include "daemon/pick/plugins.def"
#undef PLUGIN

namespace {

template <typename... Columns>
constexpr ColumnSet bits(Columns... columns) {
  return (column_bit(columns) | ...);
}

const PluginInfo kInfos[] = {
#define PLUGIN(type, kind, make, columns, summary, formula) \
  {type, PluginKind::kind, columns, summary, formula, make},
#include "daemon/pick/plugins.def"
#undef PLUGIN
};

}  // namespace

std::span<const PluginInfo> plugin_infos() { return kInfos; }

const PluginInfo* find_plugin(std::string_view type) {
  const auto* const at = std::find_if(std::begin(kInfos), std::end(kInfos),
                                      [type](const PluginInfo& info) { return info.type == type; });
  return at == std::end(kInfos) ? nullptr : at;
}

}  // namespace pickd::pick

#include "daemon/pick/profile.hpp"

#include <algorithm>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/session_ttl.hpp"

namespace pickd::pick {

namespace {

std::vector<std::string> known_types() {
  std::vector<std::string> types;
  for (const PluginInfo& info : plugin_infos()) types.emplace_back(info.type);
  return types;
}

const config::PluginConfig* find_config(const std::vector<config::PluginConfig>& plugins,
                                        const std::string& name) {
  const auto at =
      std::find_if(plugins.begin(), plugins.end(),
                   [&name](const config::PluginConfig& plugin) { return plugin.name == name; });
  return at == plugins.end() ? nullptr : &*at;
}

}  // namespace

void Profile::use(const PluginInfo& info, Plugin& plugin, double weight) {
  columns_ |= info.columns;
  switch (info.kind) {
    case PluginKind::kFilter:
      filters_.push_back(&dynamic_cast<const Filter&>(plugin));
      filter_columns_ |= info.columns;
      break;
    case PluginKind::kScorer:
      scorers_.push_back({&dynamic_cast<const Scorer&>(plugin), weight});
      break;
    case PluginKind::kPicker: picker_ = &dynamic_cast<Picker&>(plugin); break;
  }
  if (const auto* session = dynamic_cast<const SessionTtl*>(&plugin); session != nullptr) {
    session_ttl_ms_ = std::max(session_ttl_ms_, session->session_ttl_ms());
  }
}

std::unique_ptr<const Profile> Profile::make(const config::ProfileConfig& profile,
                                             const std::vector<config::PluginConfig>& plugins,
                                             config::Errors& errors) {
  const std::size_t errors_before = errors.count();
  std::unique_ptr<Profile> made(new Profile());
  made->name_ = profile.name;
  for (const config::PluginUse& use : profile.plugins) {
    const config::PluginConfig* plugin_config = find_config(plugins, use.plugin_ref);
    if (plugin_config == nullptr) {
      errors.add(use.place, "pluginRef",
                 "there is no plugin named " + config::shown(use.plugin_ref));
      continue;
    }
    const PluginInfo* info = find_plugin(plugin_config->type);
    if (info == nullptr) {
      errors.add(plugin_config->place, "type",
                 "pickd has no plugin " + config::shown(plugin_config->type) +
                     config::suggestion(plugin_config->type, known_types()));
      continue;
    }
    if (info->kind == PluginKind::kPicker && made->picker_ != nullptr) {
      errors.add(use.place, "pluginRef", "a profile has one picker, this is a second");
      continue;
    }
    config::ParameterReader parameters(*plugin_config, errors);
    made->plugins_.push_back(info->make(parameters));
    parameters.finish();
    made->use(*info, *made->plugins_.back(), use.weight.value_or(1.0));
  }
  if (made->picker_ == nullptr) {  // as in the Endpoint Picker: the default picker is added
    const config::PluginConfig fallback{"max-score-picker", "max-score-picker", nullptr, {}};
    config::ParameterReader parameters(fallback, errors);
    const PluginInfo* info = find_plugin(fallback.type);
    made->plugins_.push_back(info->make(parameters));
    made->use(*info, *made->plugins_.back(), 1.0);
  }
  if (errors.count() != errors_before) return nullptr;
  return made;
}

}  // namespace pickd::pick

#include "daemon/pick/external/load_external.hpp"

#include "daemon/config/errors.hpp"

namespace pickd::pick {

std::vector<ParameterInfo> external_parameters() {
  return {{"path", ParameterKind::kText, "", 1, 4095, "",
           "The shared library. It belongs to root or the daemon's user, and nobody else may write "
           "it.",
           true},
          {"config", ParameterKind::kText, "", 0, 4095, "", "Handed to the library's create()."},
          {"budget_us", ParameterKind::kInteger, "100", 1, 1'000'000, "",
           "Microseconds that a call may take; longer ones count as failures."},
          {"failures_max", ParameterKind::kInteger, "10", 1, 1024, "",
           "Failures within 1,024 calls after which it is switched off, until the configuration is "
           "loaded anew."}};
}

std::optional<LoadedExternal> load_external(Parameters& parameters, PluginUse use) {
  ExternalPlugin::Settings settings;
  settings.path = parameters.text("path");
  settings.budget_ns = parameters.integer("budget_us") * 1000;
  settings.failures_max = parameters.integer("failures_max");
  const std::string config = parameters.text("config");
  if (settings.path.empty()) return std::nullopt;  // said already
  // The words of what is wrong may be the library's own.
  auto library = PluginLibrary::load(settings.path, use, config);
  if (!library) {
    parameters.refuse("path", settings.path + " " + config::escaped(library.error().text));
    return std::nullopt;
  }
  auto instance = PluginInstanceHandle::make(std::move(*library), config);
  if (!instance) {
    parameters.refuse("config", settings.path + " " + config::escaped(instance.error().text));
    return std::nullopt;
  }
  return LoadedExternal{std::move(settings), std::move(*instance)};
}

}  // namespace pickd::pick

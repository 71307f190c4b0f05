// example_file: packaging/pickd.yaml out of the tables: every setting with its meaning and default,
// all of it comments, so that the file changes nothing until a line is uncommented.
#include <sstream>

#include "daemon/config/load.hpp"
#include "daemon/config/sections.hpp"
#include "daemon/config/settings.hpp"

namespace pickd::config {
namespace {

constexpr std::size_t kColumns = 98;

constexpr const char* kIntroduction =
    R"(# pickd's configuration. Every setting is here with what it means, its range and its
# default, as a comment: remove the '#' in front of a setting, and in front of its section, to
# change it. The file is strict; `pickd --check-config FILE` says all that is wrong with it, and
# `pickd --print-config --config FILE` what is in force. Settings with one value can be set from
# the environment too, which wins. docs/configuration.md has examples of each list.
)";

constexpr const char* kSchedulingText = R"(
# Without any of them the default policy holds. An EndpointPickerConfig may stand here, inline:
#  plugins:
#    - type: prefix-cache-scorer
#    - type: active-request-scorer
#  schedulingProfiles:
#    - name: default
#      plugins:
#        - {pluginRef: prefix-cache-scorer, weight: 3}
#        - {pluginRef: active-request-scorer, weight: 2}
)";

// `text` as comment lines that begin with `start`.
std::string wrapped(const std::string& text, const std::string& start) {
  std::istringstream words(text);
  std::string out;
  std::string line = start;
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = start;
    }
    line += " " + word;
  }
  return out + line + "\n";
}

std::string setting_lines(const Setting& setting) {
  const std::string indent = setting.section().empty() ? "#" : "#  ";
  std::string out = "\n" + wrapped(setting.help, indent + "#");
  out += indent + "# " + setting.range_text();
  if (!setting.is_list()) out += "; " + environment_name(setting.key);
  out += "\n" + indent + setting.name() + ":";
  if (setting.is_list()) return out + " []  # default: " + setting.absent + "\n";
  return out + " " + (setting.absent.empty() ? "\"\"" : setting.absent) + "\n";
}

std::string item_lines(const std::string& heading, const std::vector<ItemKey>& keys) {
  std::string out = "\n# " + heading + "\n";
  for (const ItemKey& key : keys) {
    const std::string absent = key.absent.empty() ? "" : "; default " + key.absent;
    out += wrapped(key.name + ": " + key.help + " " + key.range + absent + ".", "#    #");
  }
  return out;
}

}  // namespace

std::string example_file() {
  std::string out = kIntroduction;
  for (const Section& section : sections()) {
    out += "\n\n" + wrapped(section.help, "#") + "#" + section.name + ":\n";
    for (const Setting& setting : settings()) {
      if (setting.section() == section.name) out += setting_lines(setting);
    }
    if (section.name != "scheduling") continue;
    out += kSchedulingText;
    for (const Setting& setting : settings()) {
      if (setting.section().empty()) out += setting_lines(setting);
    }
  }
  out += "\n\n#endpoints:";
  out += item_lines("The static endpoints: a list of items with these keys.", endpoint_keys());
  out += "#  - {name: gpu-0, address: \"10.0.0.1:8000\"}\n";
  out += "#  - {name: gpu-1, address: \"10.0.0.2:8000\", labels: {zone: a}}\n";
  out += "\n\n#pools:";
  out += item_lines("Pools with their endpoints or where those are found; a list.", pool_keys());
  out += item_lines("discovery of a pool, with one of the first three keys:", discovery_keys());
  out +=
      "#  - name: chat\n#    models: [llama-3-8b]\n#    discovery: {dns: {name: "
      "engines.default.svc, port: 8000}}\n";
  return out;
}

}  // namespace pickd::config

// The EndpointPickerConfig schema: plugins, and profiles that use them with weights. Plugin types
// and parameters are passed on unread; only names and references are settled here.
#include <algorithm>
#include <limits>
#include <map>

#include "daemon/config/map_reader.hpp"
#include "daemon/config/sections.hpp"

namespace pickd::config {
namespace {

constexpr std::size_t kNameBytesMax = 127;
constexpr std::size_t kPluginsMax = 128;
constexpr std::size_t kProfilesMax = 16;
constexpr double kMost = std::numeric_limits<double>::max();
const std::vector<std::string> kApiVersions = {"llm-d.ai/v1alpha1",
                                               "inference.networking.x-k8s.io/v1alpha1"};
// Gates that turn on what pickd always does.
const std::vector<std::string> kGatesWithoutEffect = {"dataLayer", "prepareDataPlugins",
                                                      "haPopulateNonLeaderDatastore"};
// Parts of flowControl besides the detector.
constexpr const char* kFlowControlKeys[] = {"maxBytes",
                                            "maxRequests",
                                            "defaultRequestTTL",
                                            "noEndpointRequestTTL",
                                            "defaultPriorityBand",
                                            "defaultNegativePriorityBand",
                                            "priorityBands",
                                            "usageLimitPolicyPluginRef",
                                            "enableEviction"};
// Parts of the schema that pickd does in another way, or not yet.
const std::vector<std::pair<std::string, std::string>> kPartsNotRead = {
    {"dataLayer", "pickd gathers what its plugins need by itself; remove it"},
    {"requestHandler", "requests are parsed in the gateway; remove it"},
};

std::string item(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

void read_gates(MapReader& read, Errors& errors) {
  for (const std::string& gate : read.text_list("featureGates")) {
    if (std::find(kGatesWithoutEffect.begin(), kGatesWithoutEffect.end(), gate) !=
        kGatesWithoutEffect.end())
      continue;
    errors.add(read.place_of("featureGates"), read.path("featureGates"),
               "no such gate, " + shown(gate) +
                   (gate == "flowControl" ? ": there is no flow control in this version"
                                          : suggestion(gate, kGatesWithoutEffect)));
  }
}

using Names = std::map<std::string, Place>;

std::vector<std::string> words(const Names& names) {
  std::vector<std::string> out;
  for (const auto& [name, place] : names) out.push_back(name);
  return out;
}

Names read_plugins(MapReader& read, SchedulingConfig& scheduling, Errors& errors) {
  Names names;
  const auto items = read.list("plugins", kPluginsMax);
  for (std::size_t i = 0; i < items.size(); ++i) {
    MapReader entry(items[i].get(), item(read.path("plugins"), i), items[i]->place, errors);
    PluginConfig plugin;
    plugin.place = items[i]->place;
    plugin.type = entry.required_text("type", 1, kNameBytesMax);
    plugin.name = entry.text("name", plugin.type, 1, kNameBytesMax);
    entry.map("parameters");  // refuses what is no map
    plugin.parameters = entry.tree("parameters");
    if (plugin.parameters && !plugin.parameters->is_map()) plugin.parameters = nullptr;
    entry.finish();
    const auto [first, added] = names.emplace(plugin.name, plugin.place);
    if (!added && !plugin.name.empty()) {
      entry.refuse(entry.has("name") ? "name" : "type",
                   "the name " + shown(plugin.name) + " is taken by the plugin at " +
                       first->second.text() + "; give one of them another `name`");
    }
    scheduling.plugins.push_back(std::move(plugin));
  }
  return names;
}

PluginUse read_use(MapReader& entry, const Place& place, const Names& plugins) {
  PluginUse use;
  use.place = place;
  use.plugin_ref = entry.required_text("pluginRef", 1, kNameBytesMax);
  if (!use.plugin_ref.empty() && plugins.count(use.plugin_ref) == 0) {
    entry.refuse("pluginRef", "no plugin has the name " + shown(use.plugin_ref) +
                                  (plugins.empty() ? "; `plugins` lists none"
                                                   : suggestion(use.plugin_ref, words(plugins))));
  }
  const Tree given = entry.tree("weight");  // null: 1, as where it is left out
  if (given && !given->is_null()) use.weight = entry.number("weight", 1, -kMost, kMost);
  entry.finish();
  return use;
}

void read_profiles(MapReader& read, const Names& plugins, SchedulingConfig& scheduling,
                   Errors& errors) {
  Names names;
  const auto items = read.list("schedulingProfiles", kProfilesMax);
  for (std::size_t i = 0; i < items.size(); ++i) {
    MapReader entry(items[i].get(), item(read.path("schedulingProfiles"), i), items[i]->place,
                    errors);
    ProfileConfig profile;
    profile.place = items[i]->place;
    profile.name = entry.required_text("name", 1, kNameBytesMax);
    const auto [first, added] = names.emplace(profile.name, profile.place);
    if (!added && !profile.name.empty()) {
      entry.refuse("name", "the name " + shown(profile.name) + " is taken by the profile at " +
                               first->second.text());
    }
    const auto uses = entry.list("plugins", kPluginsMax);
    for (std::size_t j = 0; j < uses.size(); ++j) {
      MapReader use(uses[j].get(), item(entry.path("plugins"), j), uses[j]->place, errors);
      profile.plugins.push_back(read_use(use, uses[j]->place, plugins));
    }
    entry.finish();
    scheduling.profiles.push_back(std::move(profile));
  }
}

// `saturationDetector: {pluginRef}`, at the top or (as newer files have it) under flowControl.
// Older files give the thresholds of the utilization-detector in place.
void read_detector(MapReader& read, const Names& plugins, SchedulingConfig& scheduling) {
  const Tree whole = read.tree("saturationDetector");  // asked for always: it is a known key
  if (!read.has("saturationDetector")) return;
  MapReader detector = read.map("saturationDetector");
  if (!scheduling.detector.empty() || scheduling.detector_parameters) {
    read.refuse("saturationDetector", "is given already, at " + scheduling.detector_place.text());
    return;
  }
  scheduling.detector_place = read.place_of("saturationDetector");
  if (whole == nullptr || !whole->is_map()) return;
  if (detector.has("pluginRef")) {
    scheduling.detector = detector.required_text("pluginRef", 1, kNameBytesMax);
    const bool known =
        plugins.count(scheduling.detector) != 0 || scheduling.detector == "utilization-detector";
    if (!known && !scheduling.detector.empty()) {
      detector.refuse("pluginRef", "no plugin has the name " + shown(scheduling.detector) +
                                       suggestion(scheduling.detector, words(plugins)));
    }
    detector.finish();
  } else {
    scheduling.detector_parameters = whole;  // the pick folder checks them
  }
}

}  // namespace

const std::vector<ItemKey>& scheduling_keys() {
  static const std::vector<ItemKey> keys = {
      {"apiVersion", "llm-d.ai/v1alpha1 or inference.networking.x-k8s.io/v1alpha1", "",
       "Optional here; needed in a file of its own."},
      {"kind", "EndpointPickerConfig", "", "The same."},
      {"featureGates", "list", "empty",
       "`dataLayer`, `prepareDataPlugins` and `haPopulateNonLeaderDatastore` are taken and change "
       "nothing."},
      {"plugins", "list of {type, name, parameters}", "empty",
       "`name` is the type where it is left out, and unique; `parameters` is a map that the plugin "
       "checks."},
      {"saturationDetector", "{pluginRef}, or thresholds", "utilization-detector",
       "What says that a pool is saturated, so that requests of negative priority are shed; also "
       "under `flowControl`, of which nothing else is done. Older files give the thresholds of "
       "the utilization-detector here."},
      {"schedulingProfiles", "list of {name, plugins: [{pluginRef, weight}]}",
       "one, `default`, with every plugin",
       "`pluginRef` names one of `plugins`; `weight` is any finite number, negative too, and 1 "
       "where it is null or left out."},
  };
  return keys;
}

void read_scheduling(const Node& map, bool whole_file, SchedulingConfig& scheduling,
                     Errors& errors) {
  MapReader read(&map, whole_file ? "" : "scheduling", map.place, errors);
  for (const char* name : {"apiVersion", "kind"}) {
    if (whole_file && !read.has(name))
      errors.add(map.place, name, "is missing; an EndpointPickerConfig starts with it");
  }
  read.choice("apiVersion", "", kApiVersions);
  read.choice("kind", "", {"EndpointPickerConfig"});
  read_gates(read, errors);
  const Names plugins = read_plugins(read, scheduling, errors);
  read_profiles(read, plugins, scheduling, errors);
  read_detector(read, plugins, scheduling);
  MapReader flow = read.map("flowControl");
  read_detector(flow, plugins, scheduling);
  for (const char* key : kFlowControlKeys) {
    if (flow.has(key)) flow.refuse(key, "there is no flow control in this version; remove it");
    flow.tree(key);
  }
  flow.finish();
  read.tree("metadata");
  for (const auto& [part, advice] : kPartsNotRead) {
    const Tree value = read.tree(part);
    if (value && !value->is_null()) read.refuse(part, advice);
  }
  if (!whole_file) {
    read.tree("profile");
    read.tree("schedulingConfigFile");
  }
  read.finish();
  // As EPP does: plugins without a profile make one that uses them all.
  if (scheduling.profiles.empty() && !scheduling.plugins.empty()) {
    ProfileConfig profile{"default", {}, scheduling.plugins.front().place, true};
    for (const PluginConfig& plugin : scheduling.plugins) {
      profile.plugins.push_back({plugin.name, std::nullopt, plugin.place});
    }
    scheduling.profiles.push_back(std::move(profile));
  }
}

}  // namespace pickd::config

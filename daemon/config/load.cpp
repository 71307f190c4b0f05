#include "daemon/config/load.hpp"

#include <algorithm>

#include "daemon/config/errors.hpp"
#include "daemon/config/sections.hpp"
#include "daemon/config/settings.hpp"

namespace pickd::config {
namespace {

constexpr std::string_view kPrefix = "PICKD_";
constexpr const char* kSchedulingSection = "scheduling";
constexpr const char* kSchedulingFileKey = "schedulingConfigFile";
constexpr const char* kEnginesKey = "engines";
constexpr const char* kProfileKey = "scheduling.profile";

std::string_view value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    const std::string_view view = entry;
    if (view.size() > name.size() && view[name.size()] == '=' &&
        view.substr(0, name.size()) == name) {
      return view.substr(name.size() + 1);
    }
  }
  return {};
}

class Loader {
 public:
  Loader(std::string path, const std::vector<std::string>& environment)
      : path_(std::move(path)), environment_(environment) {}

  base::Result<Loaded> load() {
    apply_runtime_directory();
    if (path_.empty()) path_ = value_of(environment_, "PICKD_CONFIG");
    if (!path_.empty()) {
      const auto tree = read_tree(path_);
      if (!tree) return tree.error();
      apply_file(*tree.value());
    }
    apply_environment();
    settle_scheduling();
    check();
    loaded_.path = path_;
    if (!errors_.empty()) return base::Error{-EINVAL, errors_.text()};
    return std::move(loaded_);
  }

 private:
  Config& config() { return loaded_.config; }
  Place origin(const std::string& key) const {
    const auto found = loaded_.origins.find(key);
    return found == loaded_.origins.end() ? Place{} : found->second;
  }
  bool from_environment(const std::string& key) const {
    const Place place = origin(key);
    return place.source != nullptr && place.line == 0;
  }
  static Place variable(std::string_view name) {
    return {std::make_shared<const std::string>(name), 0, 0};
  }

  void apply_runtime_directory() {
    std::string_view directory = value_of(environment_, "RUNTIME_DIRECTORY");
    directory = directory.substr(0, directory.find(':'));  // systemd lists several with colons
    if (directory.empty() || directory[0] != '/') return;
    config().state.path = std::string(directory) + "/state";
    loaded_.origins["state.path"] = variable("RUNTIME_DIRECTORY");
  }

  void apply_file(const Node& root) {
    if (!root.is_map())
      return errors_.add(root.place, "", "must be a map of sections, such as `state:`");
    // An Endpoint Picker's own file: its scheduling, and defaults for all else.
    if (root.find("kind") != nullptr || root.find("apiVersion") != nullptr) {
      loaded_.sections[kSchedulingSection] = {root.place, true};
      return read_scheduling(root, true, config().scheduling, errors_);
    }
    for (const Entry& entry : root.entries) {
      note_section(entry);
      apply_top(entry);
    }
  }

  void note_section(const Entry& entry) {
    const Node& value = *entry.value;
    if (value.is_null()) return;
    const bool in_a_file = entry.key == kSchedulingFileKey;
    FileSection& section = loaded_.sections[in_a_file ? kSchedulingSection : entry.key];
    const bool holds = value.is_scalar() || !value.items.empty() || !value.entries.empty();
    if (!section.holds) section.place = entry.place;
    section.holds = section.holds || holds;
  }

  void apply_top(const Entry& entry) {
    const std::string& key = entry.key;
    if (key == "endpoints")
      return read_endpoints(*entry.value, entry.place, config().endpoints, errors_);
    if (key == "pools")
      return read_pools(*entry.value, entry.place, config().endpoints, config().pools, errors_);
    if (const Setting* setting = find_setting(key)) return apply(*setting, entry);
    const bool known = std::any_of(sections().begin(), sections().end(),
                                   [&key](const Section& section) { return section.name == key; });
    if (known) return apply_section(entry);
    errors_.add(entry.place, shown_key(key), "unknown key" + hint_for_top(key));
  }

  void apply_section(const Entry& section) {
    if (section.value->is_null()) return;  // every line of it commented out
    if (!section.value->is_map()) {
      return errors_.add(section.place, section.key, "must be a map of settings (`key: value`)");
    }
    const bool scheduling = section.key == kSchedulingSection;
    const bool scrape = section.key == "scrape";
    for (const Entry& entry : section.value->entries) {
      const Setting* setting = find_setting(section.key + "." + entry.key);
      if (scheduling && entry.key == kSchedulingFileKey) setting = find_setting(kSchedulingFileKey);
      if (setting != nullptr) {
        apply(*setting, entry);
      } else if (scrape && entry.key == kEnginesKey) {
        read_engines(*entry.value, entry.place, config().scrape.engines, errors_);
      } else if (!scheduling) {
        errors_.add(entry.place, section.key + "." + shown_key(entry.key),
                    "unknown key" + hint_in(section.key, entry.key));
      }
    }
    if (scheduling) read_scheduling(*section.value, false, config().scheduling, errors_);
  }

  void apply(const Setting& setting, const Entry& entry) {
    const Place before = origin(setting.key);
    if (before.source && before.line != 0) {
      return errors_.add(entry.place, setting.key, "is set already, at " + before.text());
    }
    loaded_.origins[setting.key] = entry.place;
    set_from_node(setting, *entry.value, config(), errors_);
  }

  static std::string shown_key(const std::string& key) {
    const std::string quoted = shown(key);
    return quoted.substr(1, quoted.size() - 2);
  }

  static std::string hint_in(const std::string& section, const std::string& word) {
    std::vector<std::string> names;
    for (const Setting& setting : settings()) {
      if (setting.section() == section) names.push_back(setting.name());
    }
    if (nearest(word, names).empty()) {
      const std::string elsewhere = hint_elsewhere(word);
      if (!elsewhere.empty()) return elsewhere;
    }
    return suggestion(word, names);
  }

  static std::string hint_for_top(const std::string& word) {
    std::vector<std::string> names = {"pools", "endpoints", kSchedulingFileKey};
    for (const Section& section : sections()) names.push_back(section.name);
    const std::string elsewhere = hint_elsewhere(word);
    return elsewhere.empty() ? suggestion(word, names) : elsewhere;
  }

  // A setting of that very name in some section.
  static std::string hint_elsewhere(const std::string& word) {
    for (const Setting& setting : settings()) {
      if (!setting.section().empty() && setting.name() == word)
        return " (did you mean `" + setting.key + "`?)";
    }
    return "";
  }

  void apply_environment() {
    for (const std::string& entry : environment_) {
      const std::size_t equals = entry.find('=');
      if (equals == std::string::npos || entry.compare(0, kPrefix.size(), kPrefix) != 0) continue;
      const std::string name = entry.substr(0, equals);
      if (name != "PICKD_CONFIG") apply_variable(name, entry.substr(equals + 1));
    }
  }

  void apply_variable(const std::string& name, const std::string& value) {
    const Place place = variable(name);
    const Setting* setting = name == "PICKD_SOCKET" ? find_setting("listen.socket") : nullptr;
    std::vector<std::string> names = {"PICKD_CONFIG", "PICKD_SOCKET"};
    for (const Setting& candidate : settings()) {
      names.push_back(environment_name(candidate.key));
      if (names.back() == name) setting = &candidate;
    }
    if (setting == nullptr)
      return errors_.add(place, "", "no such setting" + suggestion(name, names));
    const Place before = origin(setting->key);
    const bool differs = from_environment(setting->key) && before.text() != "RUNTIME_DIRECTORY" &&
                         value_of(environment_, before.text()) != value;
    if (differs)
      return errors_.add(place, setting->key,
                         "says something else than " + before.text() + "; set one");
    loaded_.origins[setting->key] = place;
    const auto done = set_from_text(*setting, value, config());
    if (!done) errors_.add(place, setting->key, done.error().text);
  }

  // A built-in profile, a file and plugins in place exclude each other; the environment wins over
  // the file.
  void settle_scheduling() {
    SchedulingConfig& scheduling = config().scheduling;
    scheduling.profile_place = origin(kProfileKey);
    const bool has_profile = !scheduling.profile.empty();
    const bool has_file = !scheduling.file.empty();
    const bool profile_wins = has_profile && from_environment(kProfileKey);
    const bool file_wins = has_file && from_environment(kSchedulingFileKey);
    const bool in_place = !scheduling.plugins.empty() || !scheduling.profiles.empty();
    if (profile_wins && file_wins) {
      return errors_.add(scheduling.profile_place, kProfileKey,
                         "and PICKD_SCHEDULING_CONFIG_FILE are both set; set one");
    }
    if (profile_wins || file_wins) {
      scheduling.plugins.clear();
      scheduling.profiles.clear();
      scheduling.detector.clear();
      scheduling.detector_parameters = nullptr;
      if (profile_wins) scheduling.file.clear();
      if (file_wins) scheduling.profile.clear();
    } else if (has_profile + has_file + in_place > 1) {
      const bool blame_profile = has_profile;
      return errors_.add(origin(blame_profile ? kProfileKey : kSchedulingFileKey),
                         blame_profile ? kProfileKey : kSchedulingFileKey,
                         "say either scheduling.profile, or schedulingConfigFile, or plugins with "
                         "schedulingProfiles; more than one is given");
    }
    if (!scheduling.file.empty()) read_scheduling_file();
  }

  void read_scheduling_file() {
    std::string path = config().scheduling.file;
    const std::size_t slash = path_.rfind('/');
    if (path[0] != '/' && slash != std::string::npos && !from_environment(kSchedulingFileKey)) {
      path = path_.substr(0, slash + 1) + path;
    }
    config().scheduling.path = path;
    const auto tree = read_tree(path);
    if (!tree)
      return errors_.add(origin(kSchedulingFileKey), kSchedulingFileKey, tree.error().text);
    if (!tree.value()->is_map()) {
      return errors_.add(tree.value()->place, "", "must be an EndpointPickerConfig, a map");
    }
    read_scheduling(*tree.value(), true, config().scheduling, errors_);
  }

  // What no single setting shows.
  void check() {
    const StateConfig& state = config().state;
    if (state.block_tokens % 4 != 0) {
      errors_.add(origin("state.block_tokens"), "state.block_tokens",
                  "must be a multiple of 4, is `" + std::to_string(state.block_tokens) + "`");
    }
    if (state.prefix_blocks_max < state.prefix_blocks_min) {
      const bool max_is_set = origin("state.prefix_blocks_max").source != nullptr;
      const char* key = max_is_set ? "state.prefix_blocks_max" : "state.prefix_blocks_min";
      errors_.add(origin(key), key,
                  "prefix_blocks_max, " + std::to_string(state.prefix_blocks_max) +
                      ", must not be less than prefix_blocks_min, " +
                      std::to_string(state.prefix_blocks_min));
    }
    if (state.path == config().listen.socket) {
      errors_.add(origin("listen.socket"), "listen.socket",
                  "must not be the path of the state file");
    }
    check_endpoints(config().endpoints, state.endpoints_max, errors_);
  }

  std::string path_;
  const std::vector<std::string>& environment_;
  Loaded loaded_;
  Errors errors_;
};

}  // namespace

base::Result<Loaded> load_config(const std::string& path,
                                 const std::vector<std::string>& environment) {
  return Loader(path, environment).load();
}

}  // namespace pickd::config

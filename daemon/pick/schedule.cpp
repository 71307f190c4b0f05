#include "daemon/pick/schedule.hpp"

#include <algorithm>

#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

constexpr std::string_view kDefaultProfile = "least-predicted-cost";
// Without predictions.
constexpr std::string_view kPlainProfile = "epp-default";
constexpr std::string_view kDefaultDetector = "utilization-detector";

std::vector<std::string> known_types() {
  std::vector<std::string> types;
  for (const PluginInfo& info : plugin_infos()) types.emplace_back(info.type);
  return types;
}

// The data source that a parameter of this name, in whatever plugin, refers to; empty: no source.
// None of these refers to a plugin that refers back, so there are no cycles among them.
std::string_view source_named_by(std::string_view key) {
  static constexpr std::pair<std::string_view, std::string_view> kSources[] = {
      {"prefixMatchInfoProducerName", "approx-prefix-cache-producer"},
      {"inFlightLoadProducerName", "inflight-load-producer"},
      {"latencyPredictionInfoProducerName", "predicted-latency-producer"}};
  for (const auto& [parameter, type] : kSources) {
    if (key.ends_with(parameter)) return type;
  }
  return "";
}

// Older types of the Endpoint Picker that go by another name here, however they are spelled.
std::string nearest_type(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> kOlder[] = {
      {"by-label", "by-label-selector"}, {"pd-profile-handler", "disagg-profile-handler"}};
  for (const auto& [older, here] : kOlder) {
    if (type == older) return " (did you mean " + config::shown(here) + "?)";
  }
  return config::suggestion(type, known_types());
}

std::string nothing_predicted(std::string_view what) {
  return config::shown(what) +
         " goes by predictions, and `latency.enabled` is false; set that to true, or take another "
         "profile, `" +
         std::string(kPlainProfile) + "` for example";
}

bool goes_by_predictions_alone(const config::SchedulingConfig& scheduling) {
  return std::any_of(scheduling.plugins.begin(), scheduling.plugins.end(),
                     [](const config::PluginConfig& plugin) {
                       const PluginInfo* info = find_plugin(plugin.type);
                       return info != nullptr && info->predictions_alone;
                     });
}

}  // namespace

class ScheduleMaker {
 public:
  explicit ScheduleMaker(const config::SchedulingConfig& scheduling, bool predicts = true)
      : scheduling_(scheduling), predicts_(predicts) {}

  base::Result<std::unique_ptr<const Schedule>> make() {
    for (const config::PluginConfig& plugin : scheduling_.plugins) make_plugin(plugin);
    check_references();
    for (const config::ProfileConfig& profile : scheduling_.profiles) make_profile(profile);
    choose_detector();
    // Their mistakes would be followed by others that are none.
    if (errors_.empty()) bind_handler();
    if (!errors_.empty()) return base::Error{-EINVAL, errors_.text()};
    return std::unique_ptr<const Schedule>(std::move(made_));
  }

  static std::unique_ptr<const Schedule> of(std::unique_ptr<const Profile> profile) {
    const config::SchedulingConfig none;
    ScheduleMaker maker(none);
    maker.add(std::move(profile));
    maker.choose_detector();
    return std::move(maker.made_);
  }

 private:
  std::shared_ptr<Plugin> make_plugin(const config::PluginConfig& config) {
    const PluginInfo* info = find_plugin(config.type);
    if (info == nullptr) {
      errors_.add(config.place, "type",
                  "pickd has no plugin " + config::shown(config.type) + nearest_type(config.type));
      return nullptr;
    }
    if (info->predictions_alone && !predicts_)
      errors_.add(config.place, "type", nothing_predicted(config.type));
    Parameters parameters(*info, config, errors_);
    std::shared_ptr<Plugin> plugin = info->make(parameters);
    for (const Parameters::Reference& reference : parameters.finish())
      references_.push_back(reference);
    instances_[config.name] = {info, plugin};
    made_->plugins_.push_back(plugin);
    if (auto* external = dynamic_cast<ExternalPlugin*>(plugin.get()); external != nullptr) {
      external->set_name(config.name);
      made_->externals_.push_back(external);
    }
    if (const auto* source = dynamic_cast<const Source*>(plugin.get()); source != nullptr)
      source->apply(made_->sources_);
    if (const auto* admitter = dynamic_cast<const Admitter*>(plugin.get()); admitter != nullptr) {
      made_->admitters_.push_back(admitter);
      made_->admitter_columns_ |= plugin->columns(info->columns);
    }
    if (auto* handler = dynamic_cast<ProfileHandler*>(plugin.get()); handler != nullptr) {
      if (handler_ != nullptr) {
        errors_.add(config.place, "type",
                    "a second profile handler, " + config::shown(config.name) +
                        "; one chooses the profiles");
      }
      handler_ = handler;
      handler_place_ = config.place;
    }
    return plugin;
  }

  void check_references() {
    for (const Parameters::Reference& reference : references_) {
      const auto named = std::find_if(
          scheduling_.plugins.begin(), scheduling_.plugins.end(),
          [&](const config::PluginConfig& plugin) { return plugin.name == reference.name; });
      // Sources that no configuration lists are made by themselves, under their type.
      const bool listed = named != scheduling_.plugins.end();
      const PluginInfo* info = find_plugin(listed ? named->type : reference.name);
      if (listed || (info != nullptr && info->kind == PluginKind::kSource)) {
        const std::string_view source = source_named_by(reference.key);
        // A type that pickd does not have is refused where it stands.
        if (info == nullptr || source.empty() || info->type == source) continue;
        errors_.add(reference.place, reference.key,
                    config::shown(reference.name) + " is of the type " + config::shown(info->type) +
                        "; name one of the type " + config::shown(source) + ", or leave it out");
        continue;
      }
      std::vector<std::string> names;
      for (const config::PluginConfig& plugin : scheduling_.plugins) names.push_back(plugin.name);
      errors_.add(reference.place, reference.key,
                  "no plugin has the name " + config::shown(reference.name) +
                      config::suggestion(reference.name, names));
    }
  }

  void make_profile(const config::ProfileConfig& config) {
    if (auto profile = Profile::make(config, instances_, errors_); profile != nullptr)
      add(std::move(profile));
  }

  void add(std::unique_ptr<const Profile> profile) {
    made_->name_ += (made_->name_.empty() ? "" : "+") + profile->name();
    made_->profiles_.push_back(std::move(profile));
  }

  void choose_detector() {
    std::string name = scheduling_.detector;
    if (name.empty()) name = kDefaultDetector;
    auto at = instances_.find(name);
    if (at == instances_.end() && (scheduling_.detector.empty() || name == kDefaultDetector)) {
      make_plugin({std::string(kDefaultDetector), std::string(kDefaultDetector),
                   scheduling_.detector_parameters, scheduling_.detector_place});
      at = instances_.find(kDefaultDetector);
    }
    if (at == instances_.end()) {
      std::vector<std::string> names;
      for (const auto& [known, instance] : instances_) names.push_back(known);
      errors_.add(
          scheduling_.detector_place, "saturationDetector.pluginRef",
          "no plugin has the name " + config::shown(name) + config::suggestion(name, names));
      return;
    }
    made_->detector_ = dynamic_cast<const Detector*>(at->second.plugin.get());
    made_->detector_columns_ = at->second.plugin->columns(at->second.info->columns);
    if (made_->detector_ == nullptr) {
      errors_.add(scheduling_.detector_place, "saturationDetector.pluginRef",
                  config::shown(name) + " is a " + kind_name(at->second.info->kind) +
                      "; utilization-detector and concurrency-detector are detectors");
    }
  }

  void bind_handler() {
    if (handler_ == nullptr) {
      if (made_->profiles_.size() > 1) {
        errors_.add(scheduling_.profiles[1].place, "schedulingProfiles",
                    "a second profile, and nothing that chooses; add a header-profile-handler or a "
                    "disagg-profile-handler to `plugins`");
      }
      return;
    }
    ProfileHandler::Links links;
    for (const auto& profile : made_->profiles_) links.profiles.emplace_back(profile->name());
    links.plugin = [this](std::string_view name) -> const Plugin* {
      const auto at = instances_.find(name);
      return at == instances_.end() ? nullptr : at->second.plugin.get();
    };
    if (const std::string wrong = handler_->bind(links); !wrong.empty())
      errors_.add(handler_place_, "plugins", wrong);
    made_->handler_ = handler_;
  }

  const config::SchedulingConfig& scheduling_;
  bool predicts_;
  config::Errors errors_;
  std::unique_ptr<Schedule> made_{new Schedule()};
  PluginInstances instances_;
  std::vector<Parameters::Reference> references_;
  ProfileHandler* handler_ = nullptr;
  config::Place handler_place_;
};

std::unique_ptr<const Schedule> Schedule::of(std::unique_ptr<const Profile> profile) {
  return ScheduleMaker::of(std::move(profile));
}

base::Result<std::unique_ptr<const Schedule>> Schedule::make(
    const config::SchedulingConfig& scheduling, bool predicts) {
  if (scheduling.profile.empty() && !scheduling.profiles.empty())
    return ScheduleMaker(scheduling, predicts).make();
  const std::string_view by_default = predicts ? kDefaultProfile : kPlainProfile;
  const std::string_view name = scheduling.profile.empty() ? by_default : scheduling.profile;
  const BuiltinProfile* builtin = find_builtin_profile(name);
  if (builtin == nullptr) {
    std::vector<std::string> known;
    for (const BuiltinProfile& profile : builtin_profiles()) known.emplace_back(profile.name);
    config::Errors errors;
    errors.add(scheduling.profile_place, "scheduling.profile",
               "there is no profile " + config::shown(name) + config::suggestion(name, known));
    return base::Error{-EINVAL, errors.text()};
  }
  config::SchedulingConfig made = builtin->make();
  if (!predicts && goes_by_predictions_alone(made)) {
    config::Errors errors;
    errors.add(scheduling.profile_place, "scheduling.profile", nothing_predicted(name));
    return base::Error{-EINVAL, errors.text()};
  }
  // The detector may be configured beside a built-in profile.
  made.detector = scheduling.detector;
  made.detector_parameters = scheduling.detector_parameters;
  made.detector_place = scheduling.detector_place;
  return ScheduleMaker(made).make();
}

}  // namespace pickd::pick

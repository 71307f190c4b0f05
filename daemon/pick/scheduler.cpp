#include "daemon/pick/scheduler.hpp"

#include "daemon/pick/builtin_profiles.hpp"

namespace pickd::pick {

namespace {

constexpr std::string_view kDefaultProfile = "default";

base::Result<std::unique_ptr<const Profile>> make_first(
    const config::SchedulingConfig& scheduling) {
  config::Errors errors;
  if (scheduling.profiles.size() > 1) {
    errors.add(scheduling.profiles[1].place, "schedulingProfiles",
               "one profile is supported, this is a second");
  }
  auto profile = Profile::make(scheduling.profiles.front(), scheduling.plugins, errors);
  if (!errors.empty()) return base::Error{-EINVAL, errors.text()};
  return profile;
}

}  // namespace

base::Result<std::unique_ptr<const Profile>> make_profile(
    const config::SchedulingConfig& scheduling) {
  if (scheduling.profile.empty() && !scheduling.profiles.empty()) return make_first(scheduling);
  const std::string_view name = scheduling.profile.empty() ? kDefaultProfile : scheduling.profile;
  const BuiltinProfile* builtin = find_builtin_profile(name);
  if (builtin == nullptr) {
    std::vector<std::string> known;
    for (const BuiltinProfile& profile : builtin_profiles()) known.emplace_back(profile.name);
    config::Errors errors;
    errors.add(scheduling.profile_place, "scheduling.profile",
               "there is no profile " + config::shown(name) + config::suggestion(name, known));
    return base::Error{-EINVAL, errors.text()};
  }
  return make_first(builtin->make());
}

}  // namespace pickd::pick

// From the scheduling configuration to the profile that picks.
#pragma once

#include <memory>

#include "daemon/base/result.hpp"
#include "daemon/pick/profile.hpp"

namespace pickd::pick {

// The profile in force: the named built-in one, the configured one, or the default. The error's
// text lists everything that is wrong, a line each.
base::Result<std::unique_ptr<const Profile>> make_profile(
    const config::SchedulingConfig& scheduling);

}  // namespace pickd::pick

// The trial of a plugin library: everything that pickd will do with it, done once in a child
// process that may die of it.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/base/result.hpp"
#include "daemon/pick/external/plugin_library.hpp"

namespace pickd::pick {

inline constexpr std::uint64_t kTrialNs = 2'000'000'000;  // then it hangs

// What the functions of a library lack for `use`; empty: nothing.
std::string lacks(const pickd_plugin& functions, PluginUse use);

// Of the library in the descriptor `copy`. The error says at which step it failed, and how.
base::Result<void> try_out(int copy, PluginUse use, const std::string& config);

}  // namespace pickd::pick

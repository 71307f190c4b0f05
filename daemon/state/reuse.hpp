// Whether a state file that a daemon before us left can be gone on with. Every doubt means no: an
// empty store costs some cache hits, a wrong one costs wrong picks.
#pragma once

#include <string>

#include "abi/state_layout.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/state/state_layout.hpp"

namespace pickd::state {

// Opens the file when it is a regular file of our user, mode 0600, of exactly `bytes`. Otherwise an
// invalid descriptor, and `why`. A symbolic link is never followed.
base::Fd open_for_reuse(const std::string& path, std::uint64_t bytes, std::string* why);

// Checks a mapped header against what would be made now; empty when it fits.
std::string why_not_reusable(const abi::StateHeader& header, const StateParameters& parameters,
                             const StateLayout& layout);

// What instance_id is: a digest of what is fixed when the file is made, the secret among it, so
// that damage there is noticed. As random as the secret.
std::uint64_t instance_of(const abi::StateHeader& header);

// Makes the file ours: a new epoch and what the configuration may change without moving anything.
void take_over(abi::StateHeader& header, const StateParameters& parameters);

// Marks the file at `path`, if it is a state file of ours, as replaced: whoever has it mapped looks
// for the new one.
void supersede(const std::string& path);

}  // namespace pickd::state

// One daemon a socket, one daemon a state file: a lock file beside each, held as long as the
// process lives. Not the state file itself: whoever holds a read-only descriptor of it could lock
// it.
#pragma once

#include <string>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"

namespace pickd::state {

// Takes `<path>.lock` and writes the own pid into it. Fails with -EBUSY and names the pid that has
// it.
base::Result<base::Fd> take_instance_lock(const std::string& path, const std::string& what);

}  // namespace pickd::state

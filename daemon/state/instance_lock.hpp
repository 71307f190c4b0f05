// One daemon a socket, one daemon a state file: a lock file beside each, held as long as the
// process lives. Not the state file itself: whoever holds a read-only descriptor of it could lock
// it.
//
// A state file that is reached by another name (a hard link, a mount), or whose lock file somebody
// removed, is still one file: so that is write-locked too, which nobody can who may only read it. A
// reader's lock that is in the way of this one stops no start; there the lock file must do.
#pragma once

#include <string>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"

namespace pickd::state {

// Takes `<path>.lock` and writes the own pid into it. Fails with -EBUSY and names the pid that has
// it.
base::Result<base::Fd> take_instance_lock(const std::string& path, const std::string& what);

// -EBUSY when another daemon has the state file at `path`, by whatever name; success when there is
// no such file.
base::Result<void> check_state_is_free(const std::string& path);

// Write-locks the open state file for as long as `file` and its duplicates are open. -EBUSY as
// above.
base::Result<void> lock_state(int file, const std::string& path);

}  // namespace pickd::state

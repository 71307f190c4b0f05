// The memory this process may use by its cgroup. A state file larger than that is charged to us
// page by page and ends in the kernel killing the daemon, so it is looked at before the file is
// made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pickd::state {

// The lowest limit between this process's cgroup and the root; nothing when there is none. `root`
// is where the file system of cgroups is mounted, `self` what /proc/self/cgroup says.
std::optional<std::uint64_t> memory_limit_bytes(const std::string& root, const std::string& self);
std::optional<std::uint64_t> memory_limit_bytes();

// What the cgroup of `self` uses and cannot give back: memory of programs and files on tmpfs, not
// the page cache. Nothing where it is not said.
std::optional<std::uint64_t> memory_used_bytes(const std::string& root, const std::string& self);
std::optional<std::uint64_t> memory_used_bytes();

// The size of a state file nobody asked for: `wanted`, or an eighth of the limit when that is less.
std::uint64_t default_state_bytes(std::uint64_t wanted, std::optional<std::uint64_t> limit);

}  // namespace pickd::state

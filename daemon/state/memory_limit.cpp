#include "daemon/state/memory_limit.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace pickd::state {

namespace {

constexpr std::uint64_t kDefaultShare = 8;  // the default state takes at most one part of so many

std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;  // "max" is no number: no limit
  return std::nullopt;
}

// Of /proc/self/cgroup the path of `controller` ("" = version 2's single hierarchy).
std::optional<std::string> cgroup_path(const std::string& self, const std::string& controller) {
  std::istringstream lines(self);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool match = controller.empty()
                           ? controllers == ",,"
                           : controllers.find("," + controller + ",") != std::string::npos;
    if (match) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The lowest number in files called `name` from `path` up to the root of the hierarchy.
std::optional<std::uint64_t> lowest_up(const std::string& root, std::string path,
                                       const std::string& name) {
  std::optional<std::uint64_t> lowest;
  while (true) {
    if (const auto limit = read_number(root + path + "/" + name); limit) {
      lowest = lowest ? std::min(*lowest, *limit) : *limit;
    }
    const std::size_t slash = path.rfind('/');
    if (path.empty() || path == "/" || slash == std::string::npos) return lowest;
    path.resize(slash);
  }
}

// The sum of two lines "key number"; nothing when the file has neither.
std::optional<std::uint64_t> sum_in(const std::string& path, const char* one, const char* other) {
  std::ifstream file(path);
  std::optional<std::uint64_t> sum;
  std::string key;
  for (std::uint64_t number = 0; file >> key >> number;) {
    if (key == one || key == other) sum = sum.value_or(0) + number;
  }
  return sum;
}

std::string own_cgroups() {
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream self;
  self << file.rdbuf();
  return self.str();
}

}  // namespace

std::optional<std::uint64_t> memory_limit_bytes(const std::string& root, const std::string& self) {
  if (const auto path = cgroup_path(self, ""); path) {
    if (const auto limit = lowest_up(root, *path, "memory.max"); limit) return limit;
  }
  if (const auto path = cgroup_path(self, "memory"); path) {
    const auto limit = lowest_up(root + "/memory", *path, "memory.limit_in_bytes");
    // Version 1 says "no limit" with a huge number.
    constexpr std::uint64_t kNoLimit = 1ULL << 60;
    if (limit && *limit < kNoLimit) return limit;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> memory_limit_bytes() {
  return memory_limit_bytes("/sys/fs/cgroup", own_cgroups());
}

std::optional<std::uint64_t> memory_used_bytes(const std::string& root, const std::string& self) {
  if (const auto path = cgroup_path(self, ""); path) {
    if (const auto used = sum_in(root + *path + "/memory.stat", "anon", "shmem"); used) return used;
  }
  // Version 1 counts a group alone unless it is asked for those below it, too.
  if (const auto path = cgroup_path(self, "memory"); path)
    return sum_in(root + "/memory" + *path + "/memory.stat", "total_rss", "total_shmem");
  return std::nullopt;
}

std::optional<std::uint64_t> memory_used_bytes() {
  return memory_used_bytes("/sys/fs/cgroup", own_cgroups());
}

std::uint64_t default_state_bytes(std::uint64_t wanted, std::optional<std::uint64_t> limit) {
  return limit ? std::min(wanted, *limit / kDefaultShare) : wanted;
}

}  // namespace pickd::state

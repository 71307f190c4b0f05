// What pickctl doctor knows of a daemon when it looks for faults, and what it finds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/ctl/daemon_view.hpp"

namespace pickd::ctl {

struct DoctorFacts {
  std::string version;
  std::string reactor;
  std::string reactor_why;  // why it is not io_uring though that was wanted
  std::string state_path;
  bool virtual_clock = false;
  std::uint64_t standing_still = 0;  // threads
  std::uint64_t uptime_ms = 0;
  std::uint32_t block_tokens = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t ttl_ms = 0;
  std::uint64_t scrape_interval_ms = 0;  // 0: nothing is scraped
  std::uint64_t reservations = 0;
  std::uint64_t reservations_max = 0;
  std::uint64_t prefix_words = 0;
  std::uint64_t prefix_live = 0;
  std::vector<std::string> drifting;  // classes whose predictions are far worse than they were
  std::map<std::string, std::uint64_t> counters;
  // As they were so long ago: faults are judged by what was counted since.
  std::map<std::string, std::uint64_t> counters_before;
  std::uint64_t counters_before_ms = 0;
  std::vector<EndpointView> endpoints;
  // Of the file system that holds the state, as seen from here; 0 and 0: it cannot be seen.
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_bytes_free = 0;

  // What was counted lately: totals are kept over restarts, and what went wrong last week is mended
  // or is seen again.
  std::uint64_t lately(const char* name) const {
    const auto find = [name](const std::map<std::string, std::uint64_t>& from) {
      const auto found = from.find(name);
      return found == from.end() ? 0 : found->second;
    };
    const std::uint64_t is = find(counters);
    const std::uint64_t was = find(counters_before);
    return is >= was ? is - was : is;
  }
};

// Shares of picks below this many say nothing.
inline constexpr std::uint64_t kPicksMin = 100;

enum class Severity : std::uint8_t { kNote, kWarning, kFault };

struct Finding {
  Severity severity;
  std::string what;
  std::string remedy;
};

// A check is a function here and a line in the table: it adds what it finds.
struct Check {
  const char* name;
  void (*look)(const DoctorFacts& facts, std::vector<Finding>& findings);
};

std::span<const Check> doctor_checks();

}  // namespace pickd::ctl

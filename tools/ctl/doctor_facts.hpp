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
  std::uint64_t tick_before = 0;  // of two looks, `looked_apart_ms` apart
  std::uint64_t tick = 0;
  std::uint64_t looked_apart_ms = 0;
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
  std::vector<EndpointView> endpoints;
  // Of the file system that holds the state, as seen from here; 0 and 0: it cannot be seen.
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_bytes_free = 0;

  std::uint64_t counter(const char* name) const {
    const auto found = counters.find(name);
    return found == counters.end() ? 0 : found->second;
  }
};

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

// What the page shows, as JSON: the facts, the last minutes, the newest picks and why they went
// where they went. Never in it: prompts, sessions, request ids, users.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/admin/facts.hpp"
#include "daemon/admin/history.hpp"

namespace pickd::admin {

// Points above `since`; the first `endpoints_max` endpoints.
std::string state_json(const Facts& facts, const std::vector<Check>& readiness,
                       const History& history, std::uint64_t since, std::size_t endpoints_max);
std::string picks_json(const std::vector<Source::RecentPick>& picks);
// Of /healthz and /readyz: one line a check.
std::string checks_json(const std::vector<Check>& checks);
bool all_good(const std::vector<Check>& checks);

}  // namespace pickd::admin

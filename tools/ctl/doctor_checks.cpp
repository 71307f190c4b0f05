// The checks of pickctl doctor: each a function of the facts and a line in the table at the end.
#include <algorithm>
#include <cstdio>

#include "tools/common/human.hpp"
#include "tools/ctl/doctor_facts.hpp"

namespace pickd::ctl {

namespace {

using Findings = std::vector<Finding>;

std::string percent(std::uint64_t of, std::uint64_t all) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%",
                all == 0 ? 0.0 : 100.0 * static_cast<double>(of) / static_cast<double>(all));
  return text;
}

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t at = 0; at < std::min(names.size(), kShown); ++at)
    text += (at == 0 ? "" : ", ") + tools::printable(names[at]);
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

void endpoints_ready(const DoctorFacts& facts, Findings& findings) {
  if (facts.endpoints.empty()) {
    findings.push_back(
        {Severity::kFault, "no endpoint is known: every pick is refused",
         "list them under `endpoints:`, let a pool discover them, or `pickctl add`"});
    return;
  }
  std::vector<std::string> not_ready;
  std::string why;
  for (const EndpointView& endpoint : facts.endpoints) {
    if (endpoint.ready()) continue;
    not_ready.push_back(endpoint.name);
    if (why.empty()) why = tools::printable(endpoint.why_not_ready);
  }
  if (not_ready.empty()) return;
  const bool none = not_ready.size() == facts.endpoints.size();
  const std::string what = none ? "no endpoint is ready: " + some_of(not_ready)
                                : std::to_string(not_ready.size()) + " of " +
                                      std::to_string(facts.endpoints.size()) +
                                      " endpoints are not ready: " + some_of(not_ready);
  findings.push_back({none ? Severity::kFault : Severity::kWarning, what,
                      "the first of them: " + why + "; `pickctl endpoints` shows each"});
}

// A prompt's blocks are of pickd's size; an engine caches whole blocks of its own. Where ours is no
// multiple of the engine's, the end of what we believe cached never is.
void block_size(const DoctorFacts& facts, Findings& findings) {
  std::vector<std::string> odd;
  std::uint32_t theirs = 0;
  for (const EndpointView& endpoint : facts.endpoints) {
    const bool told = endpoint.block_tokens != abi::kUnknown32 && endpoint.block_tokens != 0;
    if (!told || facts.block_tokens % endpoint.block_tokens == 0) continue;
    odd.push_back(endpoint.name);
    theirs = endpoint.block_tokens;
  }
  if (odd.empty()) return;
  findings.push_back({Severity::kWarning,
                      "state.block_tokens is " + std::to_string(facts.block_tokens) +
                          ", no multiple of the cache blocks of " + std::to_string(theirs) +
                          " tokens of " + some_of(odd),
                      "set state.block_tokens to a multiple of " + std::to_string(theirs)});
}

void matches(const DoctorFacts& facts, Findings& findings) {
  const std::uint64_t asked = facts.lately("pickd_prompt_blocks_total");
  const std::uint64_t matched = facts.lately("pickd_match_blocks_total");
  const std::uint64_t picks = facts.lately("pickd_picks_total");
  if (picks < kPicksMin || matched != 0) return;
  if (asked == 0) {
    findings.push_back({Severity::kWarning,
                        "no pick came with a whole block of prompt: none can match",
                        "pass the prompt (text or token ids) in the request, or a smaller "
                        "state.block_tokens for short prompts"});
    return;
  }
  findings.push_back(
      {Severity::kWarning,
       std::to_string(picks) + " picks lately, and none matched a block that was seen before",
       "prompts that begin alike must be the same bytes from the first on: look for a time, an id "
       "or a user's name before the common part, and for a salt that differs"});
}

void stale_loads(const DoctorFacts& facts, Findings& findings) {
  if (facts.scrape_interval_ms == 0) return;
  const std::uint64_t stale_ms = std::max<std::uint64_t>(10 * facts.scrape_interval_ms, 5000);
  std::vector<std::string> stale;
  for (const EndpointView& endpoint : facts.endpoints) {
    if (endpoint.load_told && endpoint.load_age_ms > stale_ms) stale.push_back(endpoint.name);
  }
  if (stale.empty()) return;
  findings.push_back({Severity::kWarning,
                      "the load of " + some_of(stale) +
                          " was last told more "
                          "than " +
                          tools::human_ms(stale_ms) + " ago",
                      "`pickctl endpoints` shows ages and failures; is the metrics page reachable "
                      "from here, and quick enough for scrape.interval?"});
}

void reactor(const DoctorFacts& facts, Findings& findings) {
  if (facts.reactor_why.empty()) return;
  findings.push_back({Severity::kNote,
                      "io_uring was refused (" + tools::printable(facts.reactor_why) + "); " +
                          facts.reactor + " is used",
                      "works as well with few endpoints; allow io_uring_setup in the seccomp "
                      "profile, or set listen.reactor: epoll to say it is meant"});
}

void room_for_state(const DoctorFacts& facts, Findings& findings) {
  if (facts.disk_bytes == 0) return;
  constexpr std::uint64_t kEnough = 16;  // one of so many parts
  if (facts.disk_bytes_free > facts.disk_bytes / kEnough) return;
  findings.push_back({Severity::kWarning,
                      "the file system of " + facts.state_path + " has " +
                          tools::human_bytes(facts.disk_bytes_free) + " of " +
                          tools::human_bytes(facts.disk_bytes) + " left",
                      "the state is allocated in full at the start and safe, but a restart with a "
                      "larger one will be refused: enlarge the tmpfs"});
}

void clock(const DoctorFacts& facts, Findings& findings) {
  if (facts.virtual_clock) {
    findings.push_back({Severity::kWarning, "the daemon runs with a virtual clock: nothing ages",
                        "that is for tests: start it without --virtual-clock"});
    return;
  }
}

void threads(const DoctorFacts& facts, Findings& findings) {
  if (facts.standing_still == 0) return;
  findings.push_back({Severity::kFault,
                      std::to_string(facts.standing_still) +
                          " threads of the daemon stand still: picks come degraded or late, or "
                          "nothing is forgotten",
                      "stuck or starved: look at its log and its CPU limit, then restart it; the "
                      "store stays warm"});
}

void reports(const DoctorFacts& facts, Findings& findings) {
  const std::uint64_t picks = facts.lately("pickd_picks_total");
  const std::uint64_t expired = facts.lately("pickd_reservations_expired_total");
  const std::uint64_t unknown = facts.lately("pickd_reports_unknown_total");
  if (picks >= kPicksMin && expired > picks / 20) {
    findings.push_back({Severity::kWarning,
                        percent(expired, picks) + " of the picks were never reported and ended by "
                                                  "their lease: loads are over-estimated meanwhile",
                        "report DONE, FAILED or CANCELLED for each pick, also when a client hangs "
                        "up"});
  }
  if (picks >= kPicksMin && unknown > picks / 20) {
    findings.push_back({Severity::kWarning,
                        std::to_string(unknown) + " reports named a ticket that is not (any more) "
                                                  "known",
                        "report each ticket once, and before reservations.lease is over"});
  }
  if (facts.reservations_max != 0 && facts.reservations > facts.reservations_max / 4 * 3) {
    findings.push_back({Severity::kWarning,
                        std::to_string(facts.reservations) + " of " +
                            std::to_string(facts.reservations_max) +
                            " reservations are held: what is over is picked uncounted",
                        "raise reservations.max, or look for picks that are never reported"});
  }
}

void refusals(const DoctorFacts& facts, Findings& findings) {
  const std::uint64_t picks =
      facts.lately("pickd_picks_total") + facts.lately("pickd_picks_refused_total");
  if (picks < kPicksMin) return;
  const auto add = [&](const char* counter, const char* what, const char* remedy) {
    const std::uint64_t count = facts.lately(counter);
    if (count > picks / 100)
      findings.push_back(
          {Severity::kWarning, percent(count, picks) + " of the picks " + what, remedy});
  };
  add("pickd_picks_unknown_model_total", "named a model that no endpoint serves",
      "`models:` of the endpoints must name it as gateways do, adapters included; an endpoint "
      "without models serves any");
  add("pickd_picks_limited_total", "were refused because their user is over a limit",
      "raise listen.messages_per_s, listen.blocks_per_s or reservations.per_uid_max");
  add("pickd_picks_no_endpoint_total", "found no ready endpoint", "`pickctl endpoints` shows why");
  add("pickd_picks_cut_total", "had prompts longer than listen.keys_max blocks",
      "raise listen.keys_max, or take larger blocks");
}

void store_room(const DoctorFacts& facts, Findings& findings) {
  const std::uint64_t stamped = facts.lately("pickd_stamped_blocks_total");
  const std::uint64_t lost =
      facts.lately("pickd_prefix_replaced_total") + facts.lately("pickd_prefix_left_out_total");
  if (stamped < 10'000 || lost <= stamped / 50) return;
  findings.push_back(
      {Severity::kWarning,
       percent(lost, stamped) + " of the stamped blocks found no room in a table of " +
           tools::human_bytes(facts.state_bytes),
       "raise state.size_mib: `pickctl store` shows what is remembered and why it is "
       "forgotten"});
}

void slow_clients(const DoctorFacts& facts, Findings& findings) {
  const std::uint64_t dropped = facts.lately("pickd_completions_dropped_total");
  if (dropped == 0) return;
  findings.push_back(
      {Severity::kWarning,
       std::to_string(dropped) + " answers were dropped lately: their client's ring was full",
       "a gateway submits more than it collects: poll its queue, or raise its depth"});
}

void predictions(const DoctorFacts& facts, Findings& findings) {
  if (facts.drifting.empty()) return;
  findings.push_back(
      {Severity::kNote,
       "predictions of " + some_of(facts.drifting) +
           " are far worse than they were: the model is learning anew",
       "expected after a change of engines or traffic; `pickctl status` shows errors"});
}

void reloads(const DoctorFacts& facts, Findings& findings) {
  const std::uint64_t failed = facts.lately("pickd_config_reload_failures_total");
  if (failed == 0) return;
  findings.push_back(
      {Severity::kNote, std::to_string(failed) + " changed configurations were refused lately",
       "`pickd --check-config FILE` says what is wrong, `pickctl config diff` what is "
       "in force"});
}

constexpr Check kChecks[] = {
    {"endpoints ready", endpoints_ready},
    {"block size", block_size},
    {"matches", matches},
    {"age of loads", stale_loads},
    {"reactor", reactor},
    {"room for the state", room_for_state},
    {"clock", clock},
    {"threads", threads},
    {"reports", reports},
    {"refused picks", refusals},
    {"room in the store", store_room},
    {"slow clients", slow_clients},
    {"predictions", predictions},
    {"configuration", reloads},
};

}  // namespace

std::span<const Check> doctor_checks() { return kChecks; }

}  // namespace pickd::ctl

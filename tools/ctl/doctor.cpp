// pickctl doctor: asks the daemon what there is to know, runs every check and says what would help.
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "abi/state_layout.hpp"
#include "pickd/pickd.h"
#include "tools/common/control_client.hpp"
#include "tools/common/human.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/doctor_facts.hpp"

namespace pickd::ctl {

namespace {

constexpr double kSeconds = 2;

void take(const fb::StatusAnswer& status, DoctorFacts& facts) {
  facts.version = text_of(status.version());
  facts.reactor = text_of(status.reactor());
  facts.reactor_why = text_of(status.reactor_why());
  facts.state_path = text_of(status.state_path());
  facts.virtual_clock = status.virtual_clock();
  facts.uptime_ms = status.uptime_ms();
  facts.block_tokens = status.block_tokens();
  facts.state_bytes = status.state_bytes();
  facts.ttl_ms = status.ttl_ms();
  facts.scrape_interval_ms = status.scrape_interval_ms();
  facts.reservations = status.reservations();
  facts.reservations_max = status.reservations_max();
  facts.prefix_words = status.prefix_words();
  facts.prefix_live = status.prefix_live();
  facts.counters = counters_of(status);
  facts.standing_still = facts.counters["pickd_threads_standing_still"];
  if (status.latency() == nullptr) return;
  for (const fb::LatencyClass* of : *status.latency()) {
    if (of->ttft()->drifting() || of->itl()->drifting())
      facts.drifting.push_back(of->name()->size() == 0 ? "all endpoints" : of->name()->str());
  }
}

// Looks twice, so far apart.
DoctorFacts facts_of(const std::string& socket, double seconds) {
  DoctorFacts facts;
  tools::ControlClient control(socket, "pickctl");
  const auto look = [&] {
    take(control.ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus), facts);
  };
  look();
  auto before = facts.counters;
  const std::uint64_t from_ms = facts.uptime_ms;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  facts = {};
  look();
  facts.counters_before = std::move(before);
  facts.counters_before_ms = facts.uptime_ms - std::min(from_ms, facts.uptime_ms);
  facts.endpoints = ask_endpoints(control);
  const std::string directory = facts.state_path.substr(0, facts.state_path.find_last_of('/') + 1);
  struct statvfs room {};
  if (!directory.empty() && ::statvfs(directory.c_str(), &room) == 0) {
    facts.disk_bytes = static_cast<std::uint64_t>(room.f_blocks) * room.f_frsize;
    facts.disk_bytes_free = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  }
  return facts;
}

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kFault: break;
  }
  return "fault";
}

// What was there to be judged.
void print_judged(const DoctorFacts& facts, bool behind) {
  const std::uint64_t picks =
      facts.lately("pickd_picks_total") + facts.lately("pickd_picks_refused_total");
  std::printf(
      "%s%" PRIu64 " picks of the last %s were looked at%s\n", behind ? "; " : "", picks,
      tools::human_ms(facts.counters_before_ms).c_str(),
      picks < kPicksMin ? ", too few to judge shares of them: --seconds looks for longer" : "");
}

}  // namespace

Run make_doctor(CLI::App& app, const Common& common) {
  auto seconds = std::make_shared<double>(kSeconds);
  app.add_option("--seconds", *seconds, "Judge what is counted in so many seconds from now")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.footer(
      "Exit codes: 0 nothing, or notes only; 3 warnings or faults; 1 the daemon is not there.");
  return [seconds, &common] {
    const DoctorFacts facts = facts_of(common.socket, *seconds);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    Severity worst = Severity::kNote;
    std::size_t found = 0;
    for (const Check& check : doctor_checks()) {
      std::vector<Finding> findings;
      check.look(facts, findings);
      if (findings.empty() && !common.json) std::printf("ok       %s\n", check.name);
      for (const Finding& finding : findings) {
        worst = std::max(worst, finding.severity);
        ++found;
        list.push_back({{"check", check.name},
                        {"severity", name_of(finding.severity)},
                        {"what", finding.what},
                        {"remedy", finding.remedy}});
        if (!common.json)
          std::printf("%-8s %s: %s\n         %s\n", name_of(finding.severity), check.name,
                      finding.what.c_str(), finding.remedy.c_str());
      }
    }
    if (common.json) {
      constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
      const nlohmann::ordered_json out = {{"checks", doctor_checks().size()},
                                          {"picks", facts.lately("pickd_picks_total")},
                                          {"judged_ms", facts.counters_before_ms},
                                          {"findings", list}};
      std::printf("%s\n", out.dump(2, ' ', false, kReplace).c_str());
    } else {
      std::printf("\n%s", found == 0 ? "nothing found" : "");
      print_judged(facts, found == 0);
    }
    return worst == Severity::kNote ? 0 : kExitFound;
  };
}

}  // namespace pickd::ctl

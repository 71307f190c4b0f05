// pickctl doctor: asks the daemon what there is to know, runs every check and says what would help.
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "abi/limits.hpp"
#include "abi/state_layout.hpp"
#include "pickd/pickd.h"
#include "tools/common/control_client.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/doctor_facts.hpp"

namespace pickd::ctl {

namespace {

// Between the two looks at the clock, which ticks every kTickNs.
constexpr std::chrono::milliseconds kApart{10 * (abi::kTickNs / 1'000'000)};

void take(const fb::StatusAnswer& status, DoctorFacts& facts) {
  facts.version = text_of(status.version());
  facts.reactor = text_of(status.reactor());
  facts.reactor_why = text_of(status.reactor_why());
  facts.state_path = text_of(status.state_path());
  facts.virtual_clock = status.virtual_clock();
  facts.tick = status.tick();
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
  if (status.latency() == nullptr) return;
  for (const fb::LatencyClass* of : *status.latency()) {
    if (of->ttft()->drifting() || of->itl()->drifting())
      facts.drifting.push_back(of->name()->size() == 0 ? "all endpoints" : of->name()->str());
  }
}

DoctorFacts facts_of(const std::string& socket) {
  DoctorFacts facts;
  tools::ControlClient control(socket, "pickctl");
  facts.tick_before = control.ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus).tick();
  const auto first = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(kApart);
  take(control.ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus), facts);
  facts.looked_apart_ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::steady_clock::now() - first)
                                     .count());
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

}  // namespace

Run make_doctor(CLI::App& app, const Common& common) {
  app.footer(
      "Exit codes: 0 nothing, or notes only; 3 warnings or faults; 1 the daemon is not there.");
  return [&common] {
    const DoctorFacts facts = facts_of(common.socket);
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
      const nlohmann::ordered_json out = {{"checks", doctor_checks().size()}, {"findings", list}};
      std::printf("%s\n", out.dump(2, ' ', false, kReplace).c_str());
    } else if (found == 0) {
      std::printf("\nnothing found\n");
    }
    return worst == Severity::kNote ? 0 : kExitFound;
  };
}

}  // namespace pickd::ctl

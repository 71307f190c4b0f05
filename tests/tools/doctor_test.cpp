// Each check of pickctl doctor: silent about a healthy daemon, and speaks of its own fault.
#include <gtest/gtest.h>

#include "abi/state_layout.hpp"
#include "tools/ctl/doctor_facts.hpp"

namespace pickd::ctl {
namespace {

EndpointView endpoint_of(const std::string& name) {
  EndpointView endpoint;
  endpoint.name = name;
  endpoint.state = static_cast<std::uint8_t>(abi::EndpointState::kReady);
  endpoint.kv_use_ppm = endpoint.waiting = endpoint.running = 0;
  endpoint.block_tokens = 16;
  endpoint.load_told = true;
  endpoint.load_age_ms = 40;
  return endpoint;
}

DoctorFacts healthy() {
  DoctorFacts facts;
  facts.reactor = "io_uring";
  facts.state_path = "/run/pickd/state";
  facts.block_tokens = 64;
  facts.state_bytes = 256 << 20;
  facts.scrape_interval_ms = 100;
  facts.reservations = 10;
  facts.reservations_max = 65536;
  facts.disk_bytes = 1000;
  facts.disk_bytes_free = 500;
  facts.counters = {{"pickd_picks_total", 10'000},
                    {"pickd_prompt_blocks_total", 100'000},
                    {"pickd_match_blocks_total", 60'000},
                    {"pickd_stamped_blocks_total", 100'000},
                    {"pickd_reports_total", 30'000}};
  facts.endpoints = {endpoint_of("e0"), endpoint_of("e1")};
  return facts;
}

// What is found, "severity check: what" each.
std::vector<std::string> found(const DoctorFacts& facts) {
  std::vector<std::string> lines;
  for (const Check& check : doctor_checks()) {
    std::vector<Finding> findings;
    check.look(facts, findings);
    for (const Finding& finding : findings) {
      EXPECT_FALSE(finding.remedy.empty()) << check.name;
      lines.push_back(std::to_string(static_cast<int>(finding.severity)) + " " + check.name + ": " +
                      finding.what);
    }
  }
  return lines;
}

// Exactly one finding, that of `check` with this severity, which says `words`.
void expect_one(const DoctorFacts& facts, Severity severity, const std::string& check,
                const std::string& words) {
  const std::vector<std::string> lines = found(facts);
  ASSERT_EQ(lines.size(), 1U) << (lines.empty() ? "" : lines.back());
  const std::string begin = std::to_string(static_cast<int>(severity)) + " " + check + ": ";
  EXPECT_TRUE(lines[0].starts_with(begin)) << lines[0];
  EXPECT_NE(lines[0].find(words), std::string::npos) << lines[0];
}

TEST(Doctor, FindsNothingInAHealthyDaemon) { EXPECT_TRUE(found(healthy()).empty()); }

TEST(Doctor, FindsNothingInAFreshDaemonWithoutPicks) {
  DoctorFacts facts = healthy();
  facts.counters.clear();
  EXPECT_TRUE(found(facts).empty());
}

TEST(Doctor, SeesThatNoEndpointIsKnown) {
  DoctorFacts facts = healthy();
  facts.endpoints.clear();
  expect_one(facts, Severity::kFault, "endpoints ready", "no endpoint is known");
}

TEST(Doctor, SeesThatSomeOrAllEndpointsAreNotReady) {
  DoctorFacts facts = healthy();
  facts.endpoints[1].state = static_cast<std::uint8_t>(abi::EndpointState::kDown);
  facts.endpoints[1].why_not_ready = "3 scrapes failed in a row: no connection";
  expect_one(facts, Severity::kWarning, "endpoints ready", "1 of 2 endpoints are not ready: e1");
  facts.endpoints[0].state = static_cast<std::uint8_t>(abi::EndpointState::kDraining);
  expect_one(facts, Severity::kFault, "endpoints ready", "no endpoint is ready: e0, e1");
}

TEST(Doctor, SeesABlockSizeThatIsNoMultipleOfTheEngines) {
  DoctorFacts facts = healthy();
  facts.endpoints[1].block_tokens = 48;
  expect_one(facts, Severity::kWarning, "block size", "no multiple of the cache blocks of 48");
  facts.endpoints[1].block_tokens = abi::kUnknown32;
  facts.endpoints[0].block_tokens = 0;
  EXPECT_TRUE(found(facts).empty()) << "not told is no fault";
}

TEST(Doctor, SeesThatNothingEverMatches) {
  DoctorFacts facts = healthy();
  facts.counters["pickd_match_blocks_total"] = 0;
  expect_one(facts, Severity::kWarning, "matches", "none matched a block");
  facts.counters["pickd_prompt_blocks_total"] = 0;
  expect_one(facts, Severity::kWarning, "matches", "no pick came with a whole block");
}

TEST(Doctor, SeesALoadThatNobodyToldForLong) {
  DoctorFacts facts = healthy();
  facts.endpoints[0].load_age_ms = 6000;
  expect_one(facts, Severity::kWarning, "age of loads", "the load of e0");
  facts.scrape_interval_ms = 1000;
  EXPECT_TRUE(found(facts).empty()) << "ten intervals are allowed";
  facts.scrape_interval_ms = 0;
  facts.endpoints[0].load_age_ms = 1'000'000;
  EXPECT_TRUE(found(facts).empty()) << "nobody scrapes: gateways tell, when they like";
}

TEST(Doctor, SeesThatIoUringWasRefused) {
  DoctorFacts facts = healthy();
  facts.reactor = "epoll";
  EXPECT_TRUE(found(facts).empty()) << "asked for";
  facts.reactor_why = "io_uring_setup: Operation not permitted";
  expect_one(facts, Severity::kNote, "reactor", "Operation not permitted");
}

TEST(Doctor, SeesASmallTmpfs) {
  DoctorFacts facts = healthy();
  facts.disk_bytes_free = 40;
  expect_one(facts, Severity::kWarning, "room for the state", "/run/pickd/state");
  facts.disk_bytes = facts.disk_bytes_free = 0;
  EXPECT_TRUE(found(facts).empty()) << "it cannot be seen from here";
}

TEST(Doctor, SeesAVirtualClock) {
  DoctorFacts facts = healthy();
  facts.virtual_clock = true;
  expect_one(facts, Severity::kWarning, "clock", "virtual clock");
}

TEST(Doctor, SeesThreadsThatStandStill) {
  DoctorFacts facts = healthy();
  facts.standing_still = 2;
  expect_one(facts, Severity::kFault, "threads", "2 threads of the daemon stand still");
}

TEST(Doctor, JudgesWhatWasCountedLately) {
  DoctorFacts facts = healthy();
  facts.counters_before = facts.counters;
  facts.counters_before["pickd_picks_total"] -= 1000;
  facts.counters_before["pickd_match_blocks_total"] -= 5000;
  facts.counters["pickd_picks_unknown_model_total"] = 90;  // below 1 % of all, above it of late
  expect_one(facts, Severity::kWarning, "refused picks", "named a model");
  facts.counters_before["pickd_picks_unknown_model_total"] = 90;
  EXPECT_TRUE(found(facts).empty()) << "that was before";

  facts = healthy();
  facts.counters["pickd_completions_dropped_total"] = 7;
  facts.counters["pickd_config_reload_failures_total"] = 2;
  facts.counters_before = facts.counters;
  EXPECT_TRUE(found(facts).empty()) << "what was mended is not found";
}

TEST(Doctor, SeesPicksThatNobodyReports) {
  DoctorFacts facts = healthy();
  facts.counters["pickd_reservations_expired_total"] = 600;
  expect_one(facts, Severity::kWarning, "reports", "6.0 % of the picks");
}

TEST(Doctor, SeesReportsOfNoTicketAndAFullTableOfReservations) {
  DoctorFacts facts = healthy();
  facts.counters["pickd_reports_unknown_total"] = 700;
  expect_one(facts, Severity::kWarning, "reports", "700 reports");
  facts = healthy();
  facts.reservations = 60'000;
  expect_one(facts, Severity::kWarning, "reports", "60000 of 65536");
}

TEST(Doctor, SeesWhyPicksAreRefused) {
  DoctorFacts facts = healthy();
  facts.counters["pickd_picks_refused_total"] = 500;
  facts.counters["pickd_picks_unknown_model_total"] = 500;
  expect_one(facts, Severity::kWarning, "refused picks", "no endpoint serves");
  facts.counters["pickd_picks_unknown_model_total"] = 1;
  EXPECT_TRUE(found(facts).empty()) << "one in ten thousand is somebody's typing error";
}

TEST(Doctor, SeesAStoreThatIsTooSmall) {
  DoctorFacts facts = healthy();
  facts.counters["pickd_prefix_replaced_total"] = 2'000;
  facts.counters["pickd_prefix_left_out_total"] = 1'000;
  expect_one(facts, Severity::kWarning, "room in the store", "3.0 %");
}

TEST(Doctor, SeesDroppedAnswersDriftAndRefusedConfigurations) {
  DoctorFacts facts = healthy();
  facts.counters["pickd_completions_dropped_total"] = 1;
  expect_one(facts, Severity::kWarning, "slow clients", "1 answers were dropped");
  facts = healthy();
  facts.drifting = {"a100"};
  expect_one(facts, Severity::kNote, "predictions", "a100");
  facts = healthy();
  facts.counters["pickd_config_reload_failures_total"] = 2;
  expect_one(facts, Severity::kNote, "configuration", "2 changed configurations");
}

}  // namespace
}  // namespace pickd::ctl

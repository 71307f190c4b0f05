// The traps of a simulator, each of which changed who won: what a policy may see and when, and what
// a workload must stay. Two are elsewhere: what engines share, take and preempt is shown in
// tests/tools/engine_test.cpp, and by simulation_test.cpp that scrapes have a period of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>
#include <vector>

#include "tools/sim/simulation.hpp"

namespace pickd::sim {
namespace {

// Who got which prompt, in no order.
std::vector<std::pair<std::uint32_t, std::uint32_t>> placements(const Workload& of,
                                                                const SimOptions& options) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> placed;
  for (const Prefilled& served : simulate(of, options).requests)
    placed.emplace_back(served.endpoint, served.prompt_tokens);
  std::sort(placed.begin(), placed.end());
  return placed;
}

// Until the first answer ends nothing that was seen tells one length from another.
TEST(Traps, APolicyDoesNotSeeHowLongAnAnswerWillBe) {
  Workload brief = make_workload({.name = "bursts", .seconds = 1});
  ASSERT_GE(brief.requests.size(), 200U);
  for (SimRequest& request : brief.requests) request.output_tokens = 400;
  Workload mixed = brief;
  for (std::size_t at = 0; at < mixed.requests.size(); at += 2)
    mixed.requests[at].output_tokens = 2000;
  for (const char* policy : {"least-predicted-cost", "slo", "epp-default", "dynamo-cost"})
    EXPECT_EQ(placements(brief, {.policy = policy}), placements(mixed, {.policy = policy}))
        << policy;
}

TEST(Traps, BurstsStayBursts) {
  const Workload made = make_workload({.name = "bursts", .seconds = 60});
  for (std::size_t at = 0; at + 199 < made.requests.size(); at += 200)
    EXPECT_LT(made.requests[at + 199].arrival_s - made.requests[at].arrival_s, .5);
  const std::string path = ::testing::TempDir() + "/pickd_burst.csv";
  std::ofstream(path) << "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                      << "2023-11-30 23:59:59.5,700,50\n"
                      << "2023-11-30 23:59:59.5,800,50\n"
                      << "2023-12-01 00:00:01.5,900,50\n";
  const Workload read = make_workload({.name = path, .speed = 2});
  ASSERT_EQ(read.requests.size(), 3U);
  EXPECT_EQ(read.requests[0].arrival_s, read.requests[1].arrival_s) << "at one moment";
  EXPECT_DOUBLE_EQ(read.requests[2].arrival_s, 1) << "over the end of a month, at twice the speed";
  std::remove(path.c_str());
}

// What is fair counts work: one engine may well have several times as many requests as another.
TEST(Traps, EndpointsAreNotMadeToHaveEqualCounts) {
  const Workload agents = make_workload({.name = "agents", .seconds = 240});
  const SimOutcome outcome = simulate(agents, {.step_noise = .1, .report_noise = .1});
  EXPECT_GT(outcome.busiest_share, 1.0 / 8) << "more than an equal share";
  EXPECT_EQ(outcome.requests.size(), agents.requests.size());
}

// What a trace cannot mean is refused, with the line and what would be right.
TEST(Workloads, RefuseTracesThatCannotBe) {
  const auto refusal = [](const char* name, const std::string& text) -> std::string {
    const std::string path = ::testing::TempDir() + "/pickd_bad" + name;
    std::ofstream(path) << text;
    std::string said;
    try {
      make_workload({.name = path});
    } catch (const std::exception& error) {
      said = error.what();
    }
    std::remove(path.c_str());
    return said;
  };
  const auto line = [](const char* stamp, const char* input, const char* output) {
    return std::string(R"({"timestamp": )") + stamp + R"(, "input_length": )" + input +
           R"(, "output_length": )" + output + R"(, "hash_ids": [1]})" + "\n";
  };
  const std::string good = line("0", "500", "50");
  EXPECT_EQ(refusal(".jsonl", good), "");
  EXPECT_NE(refusal(".jsonl", good + line("1", "-10", "50")).find(":2: "), std::string::npos);
  EXPECT_NE(refusal(".jsonl", line("1", "1e18", "50")).find("10000000"), std::string::npos);
  EXPECT_NE(refusal(".jsonl", line("1", "500", "1000000000")).find("output_length"),
            std::string::npos);
  EXPECT_NE(refusal(".jsonl", good + line("1e15", "500", "50")).find("31"), std::string::npos);
  EXPECT_NE(refusal(".jsonl", good + line("1e300", "500", "50")).find("31"), std::string::npos);
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_EQ(refusal(".csv", header + "2023-11-16 18:17:03.97,100,10\n"), "");
  EXPECT_NE(refusal(".csv", header + "2023-13-99 18:17:03.97,100,10\n").find(":2"),
            std::string::npos);
  EXPECT_NE(refusal(".csv", header + "1,-5,10\n").find(":2"), std::string::npos);
  EXPECT_NE(refusal(".csv", "ContextTokens,GeneratedTokens,TIMESTAMP\n100,10,1\n")
                .find("TIMESTAMP,ContextTokens,GeneratedTokens"),
            std::string::npos);
}

}  // namespace
}  // namespace pickd::sim

// The live load: exact counts, whatever threads and lost reports do.
#include "daemon/latency/live_load.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "daemon/base/random.hpp"

namespace pickd::latency {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

TEST(LiveLoad, CountsWhatWaitsAndWhatRuns) {
  LiveLoad live(4, 16);
  live.begin(1, {{2, 1}}, {1000, 400, 1100}, true, kSecondNs);
  live.begin(2, {{2, 1}}, {2000, 2000, 2100}, true, 2 * kSecondNs);
  EndpointLoad load = live.load(2, 1, 3 * kSecondNs);
  EXPECT_FLOAT_EQ(load.queued_requests, 2);
  EXPECT_FLOAT_EQ(load.queued_tokens, 2400);
  // 400 * (1000 - 200) + 2000 * (2000 - 1000)
  EXPECT_FLOAT_EQ(load.queued_work, 320'000 + 2'000'000);
  EXPECT_FLOAT_EQ(load.running, 2);
  EXPECT_FLOAT_EQ(load.kv_tokens, 3200);
  EXPECT_FLOAT_EQ(load.decoding(), 0);
  EXPECT_FLOAT_EQ(load.head_tokens, 400);
  EXPECT_FLOAT_EQ(load.head_age_s, 2);

  EXPECT_TRUE(live.first_token(1, 3 * kSecondNs).counted);
  EXPECT_FALSE(live.first_token(1, 3 * kSecondNs).counted) << "it had one";
  load = live.load(2, 1, 4 * kSecondNs);
  EXPECT_FLOAT_EQ(load.queued_tokens, 2000);
  EXPECT_FLOAT_EQ(load.decoding(), 1);
  EXPECT_FLOAT_EQ(load.decoding_tokens(), 1100);
  EXPECT_FLOAT_EQ(load.head_tokens, 2000) << "the next one is the head";
  EXPECT_FLOAT_EQ(load.head_age_s, 1) << "since the last first token";

  live.end(1, 5 * kSecondNs);
  live.end(2, 5 * kSecondNs);
  load = live.load(2, 1, 6 * kSecondNs);
  EXPECT_FLOAT_EQ(load.running, 0);
  EXPECT_FLOAT_EQ(load.queued_requests, 0);
  EXPECT_FLOAT_EQ(load.kv_tokens, 0);
}

TEST(LiveLoad, TakesTheOldestAsHeadWhenOthersLeaveFirst) {
  LiveLoad live(4, 16);
  for (std::uint32_t flight = 1; flight <= 3; ++flight)
    live.begin(flight, {{1, 1}}, {1000, 100 * flight, 1000}, true, kSecondNs * flight);
  live.first_token(2, 4 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 4 * kSecondNs).head_tokens, 100);
  live.end(1, 5 * kSecondNs);  // cancelled
  EXPECT_FLOAT_EQ(live.load(1, 1, 5 * kSecondNs).head_tokens, 300);
}

TEST(LiveLoad, KeepsTheAgeOfAHeadThatWasOvertaken) {
  LiveLoad live(4, 16);
  live.begin(1, {{1, 1}}, {1000, 1000, 1000}, true, 1 * kSecondNs);
  live.begin(2, {{1, 1}}, {1000, 1000, 1000}, true, 2 * kSecondNs);
  live.begin(3, {{1, 1}}, {1000, 1000, 1000}, true, 2 * kSecondNs);
  live.first_token(2, 4 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 5 * kSecondNs).head_age_s, 4)
      << "what was done for it is not undone";
  live.first_token(1, 6 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 7 * kSecondNs).head_age_s, 1);
}

TEST(LiveLoad, BeginsAnewWithAGeneration) {
  LiveLoad live(4, 16);
  live.begin(1, {{1, 1}}, {1000, 1000, 1000}, true, kSecondNs);
  live.begin(2, {{1, 2}}, {500, 500, 500}, true, kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 2, kSecondNs).running, 1);
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).running, 0);
  // Case 31: what was sent to the generation before ends without touching the new one.
  live.end(1, kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 2, kSecondNs).running, 1);
  EXPECT_FLOAT_EQ(live.load(1, 2, kSecondNs).queued_tokens, 500);
}

TEST(LiveLoad, MovesARequestWithWhatItWaitsFor) {
  LiveLoad live(4, 16);
  live.begin(1, {{1, 1}}, {1000, 700, 1000}, true, kSecondNs);
  live.move(1, {2, 1}, 2 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).running, 0);
  EXPECT_FLOAT_EQ(live.load(2, 1, kSecondNs).queued_tokens, 700);
  live.first_token(1, 3 * kSecondNs);
  live.move(1, {3, 1}, 4 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(3, 1, kSecondNs).queued_requests, 0);
  EXPECT_FLOAT_EQ(live.load(3, 1, kSecondNs).decoding(), 1);
}

TEST(LiveLoad, CountsALineLongerThanItRemembers) {
  LiveLoad live(2, 1000);
  for (std::uint32_t flight = 0; flight < 1000; ++flight)
    live.begin(flight, {{1, 1}}, {100, 100, 100}, true, kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).queued_tokens, 100'000);
  for (std::uint32_t flight = 0; flight < 1000; ++flight) live.first_token(flight, kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).queued_tokens, 0);
  live.begin(1, {{1, 1}}, {300, 300, 300}, true, 2 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 3 * kSecondNs).head_tokens, 300);
  EXPECT_FLOAT_EQ(live.load(1, 1, 3 * kSecondNs).head_age_s, 1);
}

TEST(LiveLoad, TakesARequestThatManyOvertookForOneWhoseReportIsLost) {
  LiveLoad live(2, 64);
  live.begin(0, {{1, 1}}, {5000, 5000, 5000}, true, kSecondNs);
  for (std::uint32_t flight = 1; flight <= 10; ++flight) {
    live.begin(flight, {{1, 1}}, {100, 100, 100}, true, kSecondNs);
    live.first_token(flight, kSecondNs + flight);
  }
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).queued_tokens, 5000) << "overtaken, but not for long";
  live.begin(20, {{1, 1}}, {100, 100, 100}, true, 4 * kSecondNs);
  live.first_token(20, 4 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 4 * kSecondNs).queued_tokens, 0);
  EXPECT_FLOAT_EQ(live.load(1, 1, 4 * kSecondNs).queued_requests, 0);
  EXPECT_FLOAT_EQ(live.load(1, 1, 4 * kSecondNs).head_tokens, 0);
  // The report comes after all: it changes nothing more.
  live.first_token(0, 5 * kSecondNs);
  live.end(0, 6 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 6 * kSecondNs).queued_tokens, 0);
  EXPECT_FLOAT_EQ(live.load(1, 1, 6 * kSecondNs).kv_tokens, 11 * 100);
}

// One that overtakes is enough where the first token is due for long; those behind it go with it.
TEST(LiveLoad, TakesOverdueRequestsThatOneOvertookForThoseWhoseReportsAreLost) {
  LiveLoad live(2, 64);
  const FlightSize due_soon{5000, 5000, 5000, 2 * kSecondNs};
  live.begin(0, {{1, 1}}, due_soon, true, kSecondNs);
  live.begin(1, {{1, 1}}, due_soon, true, kSecondNs);
  live.begin(2, {{1, 1}}, {5000, 5000, 5000, 9 * kSecondNs}, true, kSecondNs);
  const auto overtake = [&](std::uint32_t flight, std::uint64_t at_ns) {
    live.begin(flight, {{1, 1}}, {100, 100, 100}, true, at_ns);
    live.first_token(flight, at_ns);
    return live.load(1, 1, at_ns).queued_tokens;
  };
  EXPECT_FLOAT_EQ(overtake(10, 2 * kSecondNs - 1), 15'000) << "not due yet";
  EXPECT_FLOAT_EQ(overtake(11, 2 * kSecondNs), 5000) << "both that are due, and not the third";
  EXPECT_FLOAT_EQ(live.load(1, 1, 2 * kSecondNs).queued_requests, 1);
  live.first_token(0, 3 * kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, 3 * kSecondNs).queued_tokens, 5000);
}

TEST(LiveLoad, DrawsDownTheFlightItWasToldAndNoLaterOne) {
  LiveLoad live(2, 4);
  const std::uint64_t first = live.begin(1, {{1, 1}}, {100, 100, 100}, true, kSecondNs);
  live.end(1, kSecondNs);
  const std::uint64_t second = live.begin(1, {{1, 1}}, {300, 300, 300}, true, kSecondNs);
  EXPECT_FALSE(live.draw_down(1, first, kSecondNs));
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).running, 1);
  EXPECT_TRUE(live.draw_down(1, second, kSecondNs));
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).running, 0);
  EXPECT_FALSE(live.first_token(1, kSecondNs).counted);
  live.end(1, kSecondNs);
  EXPECT_FLOAT_EQ(live.load(1, 1, kSecondNs).running, 0);
}

// Workers at once: at the end nothing is left, and the next request is the head.
TEST(LiveLoad, IsExactAfterManyThreads) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kRounds = 20'000;
  LiveLoad live(3, 64 * kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&live, thread] {
      base::Random random(thread + 1);
      std::vector<bool> open(64);
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const auto at = static_cast<std::uint32_t>(random.next() % 64);
        const std::uint32_t flight = thread * 64 + at;
        if (!open[at]) {
          const auto tokens = static_cast<std::uint32_t>(random.next() % 1000);
          live.begin(flight, {{1 + tokens % 2, 1}}, {1000, tokens, 1000}, true, round);
          open[at] = true;
        } else if (random.next() % 2 == 0) {
          live.first_token(flight, round);
        } else {
          live.end(flight, round);
          open[at] = false;
        }
      }
      for (std::uint32_t at = 0; at < 64; ++at) live.end(thread * 64 + at, kRounds);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint32_t endpoint : {1U, 2U}) {
    const EndpointLoad load = live.load(endpoint, 1, kRounds);
    EXPECT_FLOAT_EQ(load.running, 0);
    EXPECT_FLOAT_EQ(load.queued_tokens, 0);
    EXPECT_FLOAT_EQ(load.queued_requests, 0);
    EXPECT_FLOAT_EQ(load.kv_tokens, 0);
    live.begin(1, {{endpoint, 1}}, {5000, 4321, 5000}, true, kRounds);
    EXPECT_FLOAT_EQ(live.load(endpoint, 1, kRounds).head_tokens, 4321);
  }
}

}  // namespace
}  // namespace pickd::latency

// The tightest time between tokens promised at an endpoint, from one thread and from many.
#include "daemon/latency/itl_promises.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "daemon/base/random.hpp"

namespace pickd::latency {
namespace {

TEST(ItlPromises, AreTheTightestOfThoseInFlight) {
  ItlPromises promises(8, 16);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(3)));
  promises.begin(1, 3, 50);
  promises.begin(2, 3, 20);
  promises.begin(3, 3, 200);
  promises.begin(4, 5, 10);
  EXPECT_EQ(promises.tightest_ms(3), 20);
  EXPECT_EQ(promises.tightest_ms(5), 10);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(4)));
  promises.end(2);
  EXPECT_EQ(promises.tightest_ms(3), 50);
  promises.end(1);
  EXPECT_EQ(promises.tightest_ms(3), 200);
  promises.end(3);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(3)));
}

TEST(ItlPromises, LastUntilThatRequestEndsOnce) {
  ItlPromises promises(8, 16);
  promises.begin(1, 3, 20);
  promises.begin(2, 3, 20);
  promises.end(1);
  promises.end(1);
  EXPECT_EQ(promises.tightest_ms(3), 20);
  promises.end(2);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(3)));
}

TEST(ItlPromises, GoWithTheRequestToAnotherEndpoint) {
  ItlPromises promises(8, 16);
  promises.begin(1, 3, 20);
  promises.move(1, 4);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(3)));
  EXPECT_EQ(promises.tightest_ms(4), 20);
  promises.end(1);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(4)));
}

TEST(ItlPromises, TakeValuesOfAnySize) {
  ItlPromises promises(2, 4);
  for (const float ms : {0.001F, 0.02F, 1.0F, 1.99F, 2.0F, 511.0F, 513.0F, 9'000.0F, 86.4e6F}) {
    promises.begin(0, 1, ms);
    const float tightest_ms = promises.tightest_ms(1);
    EXPECT_GT(tightest_ms, 0) << ms;
    EXPECT_LE(tightest_ms, std::max(ms, .016F)) << ms;
    promises.end(0);
  }
  for (const float nothing : {0.0F, -1.0F, std::nanf("")}) promises.begin(0, 1, nothing);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(1)));
}

TEST(ItlPromises, IgnoreNumbersBeyondTheirTables) {
  ItlPromises promises(2, 4);
  promises.begin(4, 1, 20);
  promises.begin(0, 2, 20);
  promises.begin(0, 0, 20);
  promises.end(4);
  promises.move(4, 1);
  EXPECT_TRUE(std::isinf(promises.tightest_ms(1)));
}

TEST(ItlPromises, AreNoneAfterManyThreadsKeptAndEndedThem) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kEach = 64;
  ItlPromises promises(4, kThreads * kEach);
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&promises, thread] {
      base::Random random(thread);
      for (int turn = 0; turn < 20'000; ++turn) {
        const auto flight = static_cast<std::uint32_t>(thread * kEach + random.next() % kEach);
        const auto endpoint = static_cast<std::uint32_t>(1 + random.next() % 3);
        const auto ms = static_cast<float>(5 * (1 + random.next() % 20));
        promises.end(flight);
        promises.begin(flight, endpoint, ms);
        EXPECT_GT(promises.tightest_ms(endpoint), 0);
        if (turn % 8 == 0) promises.move(flight, 1 + endpoint % 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t flight = 0; flight < kThreads * kEach; ++flight) promises.end(flight);
  for (std::uint32_t endpoint = 1; endpoint < 4; ++endpoint)
    EXPECT_TRUE(std::isinf(promises.tightest_ms(endpoint))) << endpoint;
}

}  // namespace
}  // namespace pickd::latency

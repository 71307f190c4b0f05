// UserCounts: exact for every user, whatever comes and goes, from any thread.
#include "daemon/endpoints/user_counts.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace pickd::endpoints::test {
namespace {

TEST(UserCounts, CountEachUserAlone) {
  const auto counts = std::make_unique<UserCounts>();
  for (std::uint32_t uid = 0; uid < 200; ++uid) {
    for (std::uint32_t at = 0; at < uid % 5; ++at) counts->add(uid);
  }
  for (std::uint32_t uid = 0; uid < 200; ++uid) EXPECT_EQ(counts->count(uid), uid % 5) << uid;
  for (std::uint32_t uid = 0; uid < 200; ++uid) {
    for (std::uint32_t at = 0; at < uid % 5; ++at) counts->sub(uid);
  }
  for (std::uint32_t uid = 0; uid < 200; ++uid) EXPECT_EQ(counts->count(uid), 0U) << uid;
}

TEST(UserCounts, NeverFallBelowZero) {
  const auto counts = std::make_unique<UserCounts>();
  counts->sub(1000);
  EXPECT_EQ(counts->count(1000), 0U);
  counts->add(1000);
  EXPECT_EQ(counts->count(1000), 1U);
}

TEST(UserCounts, GiveThePlaceOfAUserWithNothingToAnother) {
  const auto counts = std::make_unique<UserCounts>();
  // Far more users than places, one after the other.
  for (std::uint32_t uid = 1; uid < 100'000; ++uid) {
    counts->add(uid);
    ASSERT_EQ(counts->count(uid), 1U);
    counts->sub(uid);
  }
}

TEST(UserCounts, StayExactWhenThreadsAddAndSubtract) {
  const auto counts = std::make_unique<UserCounts>();
  counts->add(7);
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&counts, thread] {
      for (int at = 0; at < 50'000; ++at) {
        counts->add(7);
        counts->add(100 + thread);
        counts->sub(7);
        if (at % 2 == 0) counts->sub(100 + thread);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts->count(7), 1U);
  for (std::uint32_t thread = 0; thread < 4; ++thread)
    EXPECT_EQ(counts->count(100 + thread), 25'000U);
}

}  // namespace
}  // namespace pickd::endpoints::test

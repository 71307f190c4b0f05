// RateBucket in made-up time: a second's worth at once, then the rate, for all that share it.
#include "daemon/workers/rate_bucket.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pickd::workers::test {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kBeginning = 5 * kSecondNs;

std::uint64_t take_all(RateBucket& bucket, std::uint64_t now_ns, std::uint64_t amount = 1) {
  std::uint64_t taken = 0;
  while (bucket.take(amount, now_ns)) taken += amount;
  return taken;
}

TEST(RateBucket, HoldsASecondsWorthAndFillsAtItsRate) {
  RateBucket bucket(1000);
  EXPECT_EQ(take_all(bucket, kBeginning), 1000U);
  EXPECT_FALSE(bucket.is_full(kBeginning));
  EXPECT_EQ(take_all(bucket, kBeginning + kSecondNs / 10), 100U);
  EXPECT_EQ(take_all(bucket, kBeginning + kSecondNs / 10), 0U);
  EXPECT_EQ(take_all(bucket, kBeginning + 100 * kSecondNs), 1000U) << "no more for waiting longer";
  EXPECT_TRUE(bucket.is_full(kBeginning + 102 * kSecondNs));
}

TEST(RateBucket, IsExactFromTheLowestToTheHighestRate) {
  for (const std::uint64_t per_s : {1ULL, 7ULL, 1000ULL, 20'000'000ULL, 1'000'000'000ULL}) {
    RateBucket bucket(per_s);
    const std::uint64_t amount = per_s >= 1'000'000 ? 1000 : 1;
    const auto wanted = static_cast<double>(per_s);
    EXPECT_NEAR(static_cast<double>(take_all(bucket, kBeginning, amount)), wanted, wanted / 100 + 1)
        << per_s;
  }
}

TEST(RateBucket, LetsOneThatIsLargerThanItHaveItsTurnAndMakesItWait) {
  RateBucket bucket(100);
  EXPECT_TRUE(bucket.take(2000, kBeginning));
  EXPECT_FALSE(bucket.take(1, kBeginning));
  EXPECT_FALSE(bucket.take(1, kBeginning + 18 * kSecondNs)) << "2,000 are 20 seconds' worth";
  EXPECT_TRUE(bucket.take(1, kBeginning + 20 * kSecondNs));
}

TEST(RateBucket, ChargesWithoutRefusingAndWithoutEndlessDebt) {
  RateBucket bucket(10);
  for (int at = 0; at < 1'000'000; ++at) bucket.charge(1, kBeginning);
  EXPECT_FALSE(bucket.take(1, kBeginning));
  EXPECT_TRUE(bucket.take(1, kBeginning + 2 * kSecondNs));
}

TEST(RateBucket, OfNoneHasNoLimit) {
  RateBucket bucket(0);
  for (int at = 0; at < 1000; ++at) ASSERT_TRUE(bucket.take(1 << 24, kBeginning));
  EXPECT_TRUE(bucket.is_full(kBeginning));
}

TEST(RateBucket, GivesThreadsTogetherWhatItHolds) {
  RateBucket bucket(100'000);
  std::vector<std::uint64_t> taken(4);
  std::vector<std::thread> threads;
  for (std::uint64_t& mine : taken) {
    threads.emplace_back([&bucket, &mine] { mine = take_all(bucket, kBeginning); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], 100'000U);
}

}  // namespace
}  // namespace pickd::workers::test

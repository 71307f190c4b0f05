// The share of a client's own picks that one endpoint may get.
#include "libclient/recent_picks.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace pickd::client {
namespace {

// Where a pick goes that wants `home`: there if its share allows, else to one of the others.
std::uint32_t place(const RecentPicks& recent, std::uint32_t home, std::uint32_t endpoints,
                    std::mt19937& random) {
  std::uint64_t all = 0;
  for (std::uint32_t at = 0; at < endpoints; ++at) all += recent.of(at);
  for (std::uint32_t at = home;; at = static_cast<std::uint32_t>(random() % endpoints)) {
    if (RecentPicks::has_room(recent.of(at), all, endpoints)) return at;
  }
}

TEST(RecentPicks, KeepTheHomeOfAHotPrefixAtTwiceTheMean) {
  std::mt19937 random(1);
  for (const std::uint32_t endpoints : {1U, 2U, 3U, 4U, 8U, 16U, 100U}) {
    const auto recent = std::make_unique<RecentPicks>();
    std::uint64_t at_home = 0;
    std::uint64_t picks = 0;
    for (; picks < 400 * endpoints; ++picks) {
      const std::uint32_t at = place(*recent, 0, endpoints, random);
      at_home += at == 0 ? 1 : 0;
      recent->add(at, endpoints);
    }
    const double mean = static_cast<double>(picks) / endpoints;
    EXPECT_LE(static_cast<double>(at_home), 2.1 * mean + 2) << endpoints;
    EXPECT_GE(static_cast<double>(at_home), std::min(endpoints, 2U) * 0.9 * mean) << endpoints;
  }
}

TEST(RecentPicks, NeverGiveThreeTimesTheMeanOnceEachCouldHaveHadOne) {
  std::mt19937 random(2);
  for (const std::uint32_t endpoints : {4U, 8U, 16U, 64U}) {
    const auto recent = std::make_unique<RecentPicks>();
    std::vector<std::uint64_t> had(endpoints);
    for (std::uint64_t picks = 1; picks < 200 * endpoints; ++picks) {
      const std::uint32_t at = place(*recent, 0, endpoints, random);
      recent->add(at, endpoints);
      ++had[at];
      if (picks < endpoints) continue;
      ASSERT_LE(had[0] * endpoints, 3 * picks) << endpoints << " endpoints, pick " << picks;
    }
  }
}

TEST(RecentPicks, LetEvenPicksGoWhereTheyWant) {
  const auto recent = std::make_unique<RecentPicks>();
  constexpr std::uint32_t kEndpoints = 16;
  for (std::uint32_t pick = 0; pick < 2000; ++pick) {
    std::uint64_t all = 0;
    for (std::uint32_t at = 0; at < kEndpoints; ++at) all += recent->of(at);
    const std::uint32_t home = pick % kEndpoints;
    ASSERT_TRUE(RecentPicks::has_room(recent->of(home), all, kEndpoints)) << pick;
    recent->add(home, kEndpoints);
  }
}

TEST(RecentPicks, AlwaysLeaveAPlace) {
  // Whatever was picked before by other rules: those with the least have room.
  std::mt19937 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    const std::uint32_t candidates = 1 + random() % 20;
    std::uint64_t all = 0;
    std::uint32_t least = UINT32_MAX;
    for (std::uint32_t at = 0; at < candidates; ++at) {
      const auto had = static_cast<std::uint32_t>(random() % 1000);
      all += had;
      least = std::min(least, had);
    }
    EXPECT_TRUE(RecentPicks::has_room(least, all, candidates));
  }
}

TEST(RecentPicks, FadeSoThatAHomeIsNotOwedWhatItDidNotGet) {
  const auto recent = std::make_unique<RecentPicks>();
  constexpr std::uint32_t kEndpoints = 8;
  for (std::uint32_t pick = 0; pick < 100'000; ++pick)
    recent->add(1 + pick % (kEndpoints - 1), kEndpoints);
  std::mt19937 random(4);
  std::uint32_t in_a_row = 0;
  while (place(*recent, 0, kEndpoints, random) == 0) {
    recent->add(0, kEndpoints);
    ++in_a_row;
  }
  EXPECT_LE(in_a_row, 3 * RecentPicks::kRememberedEach);
}

}  // namespace
}  // namespace pickd::client

// The packed words of the state segment: what stands in which bits, which stamps live, where keys
// go.
#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "abi/prefix_word.hpp"
#include "abi/state_layout.hpp"

namespace pickd::abi {
namespace {

// A Weyl sequence through a mixer: well spread keys, the same in every run.
std::uint64_t spread_key(std::uint64_t index) {
  std::uint64_t mixed = (index + 1) * 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

TEST(PrefixWord, HoldsEachPartInItsBits) {
  EXPECT_EQ(PrefixWord::make(1, Tier::kAssumed, 0, 0).bits, 1ULL << 34);
  EXPECT_EQ(PrefixWord::make(0, Tier::kRemote, 0, 0).bits, 3ULL << 32);
  EXPECT_EQ(PrefixWord::make(0, Tier::kAssumed, 0xFFF, 0).bits, 0xFFFULL << 20);
  EXPECT_EQ(PrefixWord::make(0, Tier::kAssumed, 0, 0xFFFFF).bits, 0xFFFFFULL);
  const PrefixWord word = PrefixWord::make(0x3FFFFFFE, Tier::kHost, 4095, 0x12345);
  EXPECT_EQ(word.tag(), 0x3FFFFFFEU);
  EXPECT_EQ(word.tier(), Tier::kHost);
  EXPECT_EQ(word.endpoint(), 4095U);
  EXPECT_EQ(word.stamp(), 0x12345U);
  EXPECT_FALSE(word.empty());
  EXPECT_TRUE(PrefixWord{}.empty());
}

TEST(PrefixWord, CutsAFullWidthTickToItsStamp) {
  EXPECT_EQ(PrefixWord::make(1, Tier::kGpu, 1, 0x7ABCDEF).stamp(), 0xBCDEFU);
}

TEST(Stamp, LivesFromTheHorizonOn) {
  EXPECT_TRUE(stamp_is_live(1000, 1000, 2000));
  EXPECT_FALSE(stamp_is_live(999, 1000, 2000));
  EXPECT_TRUE(stamp_is_live(2000, 1000, 2000));
}

TEST(Stamp, LivesWhenTheReadersClockIsALittleBehind) {
  EXPECT_TRUE(stamp_is_live(2000 + kClockSlackTicks, 1000, 2000));
  EXPECT_FALSE(stamp_is_live(2000 + kClockSlackTicks + 1, 1000, 2000));
}

TEST(Stamp, LivesAcrossTheWrap) {
  const std::uint32_t horizon = kStampMask - 10;
  EXPECT_TRUE(stamp_is_live(kStampMask, horizon, 20));
  EXPECT_TRUE(stamp_is_live(5, horizon, 20));
  EXPECT_FALSE(stamp_is_live(horizon - 1, horizon, 20));
  EXPECT_EQ(stamp_age(kStampMask, 20), 21U);
  EXPECT_EQ(stamp_age(22, 20), 0U) << "ahead of this reader's clock";
}

TEST(LifeWord, HoldsGenerationFloorAndHorizon) {
  const LifeWord life = LifeWord::make(0xABCDEF, 0x12345, 0x6789A);
  EXPECT_EQ(life.bits, 0xABCDEF123456789AULL);
  EXPECT_EQ(life.generation(), 0xABCDEFU);
  EXPECT_EQ(life.floor(), 0x12345U);
  EXPECT_EQ(life.horizon(), 0x6789AU);
}

TEST(CountWord, KeepsTheGenerationWhenTheCountIsFull) {
  const CountWord count = CountWord::make(7, CountWord::kCountMask);
  EXPECT_EQ(count.generation(), 7U);
  EXPECT_EQ(count.count(), (1ULL << 40) - 1);
  EXPECT_EQ(CountWord::make(7, 1ULL << 40).count(), 0U);
}

TEST(Handle, NamesAnEndpointOfOneGeneration) {
  const std::uint64_t handle = endpoint_handle(4095, 0xFFFFFF);
  EXPECT_EQ(handle, 0xFFFFFFFFFULL);
  EXPECT_EQ(handle_endpoint(handle), 4095U);
  EXPECT_EQ(handle_generation(handle), 0xFFFFFFU);
  EXPECT_NE(endpoint_handle(1, 1), endpoint_handle(1, 2));
}

TEST(Handle, StandsBesideThatOfWhoEncodesInOneWord) {
  const std::uint64_t prefill = endpoint_handle(4095, 0xFFFFFF);
  const std::uint64_t word = with_encode(prefill, endpoint_handle(17, 0xAB1234));
  EXPECT_EQ(prefill_handle_of(word), prefill);
  EXPECT_EQ(encode_endpoint_of(word), 17U);
  EXPECT_TRUE(is_encode_generation(word, 0xAB1234));
  EXPECT_FALSE(is_encode_generation(word, 0xAB1235));
  EXPECT_EQ(with_encode(prefill, 0), prefill);
  EXPECT_EQ(encode_endpoint_of(prefill), 0U);
  EXPECT_EQ(prefill_handle_of(with_encode(0, endpoint_handle(17, 1))), 0U);
}

TEST(KeyPlace, HasGoldenPlaces) {
  const KeyPlace place = place_of(0x0123456789ABCDEFULL, 1 << 20);
  EXPECT_EQ(place.line_a, 0x1234U);
  EXPECT_EQ(place.line_b, 0x7E44DU);
  EXPECT_EQ(place.tag, 0x09ABCDEFU);
}

TEST(KeyPlace, NeverHasTheTagOfAnEmptyWord) {
  EXPECT_EQ(place_of(0, 1024).tag, 1U);
  EXPECT_EQ(place_of(0xFFFFFFFFC0000000ULL, 1024).tag, 1U);
}

TEST(KeyPlace, AlwaysNamesTwoDifferentLinesOfTheTable) {
  for (const std::uint64_t lines : {2ULL, 6ULL, 1000ULL, 1ULL << 32}) {
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const KeyPlace place = place_of(spread_key(i), lines);
      ASSERT_LT(place.line_a, lines);
      ASSERT_LT(place.line_b, lines);
      ASSERT_NE(place.line_a, place.line_b) << "key " << i << " of " << lines << " lines";
    }
  }
}

// Balls in bins: of 64 a line on the average, chi-square over 1,024 lines has mean 1,023 and
// standard deviation 45; six of them are allowed. Fixed keys, so this passes always or never.
TEST(KeyPlace, SpreadsKeysEvenlyOverBothLines) {
  constexpr std::uint64_t kLines = 1024;
  constexpr std::uint64_t kKeys = 64 * kLines;
  std::vector<double> first(kLines);
  std::vector<double> second(kLines);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const KeyPlace place = place_of(spread_key(i), kLines);
    first[place.line_a] += 1;
    second[place.line_b] += 1;
  }
  const auto chi_square = [](const std::vector<double>& counts) {
    double sum = 0;
    for (const double count : counts) sum += (count - 64) * (count - 64) / 64;
    return sum;
  };
  EXPECT_LT(chi_square(first), 1023 + 6 * 45);
  EXPECT_LT(chi_square(second), 1023 + 6 * 45);
}

// Keys that share their first line must not share the second: a full pair of lines would stay full.
TEST(KeyPlace, SendsKeysOfOneFirstLineToManySecondLines) {
  constexpr std::uint64_t kLines = 1024;
  std::unordered_set<std::uint64_t> seconds;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; found < 200; ++i) {
    const KeyPlace place = place_of(spread_key(i), kLines);
    if (place.line_a != 17) continue;
    ++found;
    seconds.insert(place.line_b);
  }
  EXPECT_GT(seconds.size(), 160U);  // 182 are expected of a random function
}

TEST(GroupKey, IsSharedByEightEndpointsAndDiffersOtherwise) {
  const std::uint64_t key = spread_key(1);
  EXPECT_EQ(group_key(key, 8), group_key(key, 15));
  std::unordered_set<std::uint64_t> keys{key};
  for (std::uint32_t endpoint = 0; endpoint < kEndpointIdsMax; endpoint += kEndpointGroupSize) {
    keys.insert(group_key(key, endpoint));
  }
  EXPECT_EQ(keys.size(), 1 + kEndpointIdsMax / kEndpointGroupSize);
}

}  // namespace
}  // namespace pickd::abi

// The prefix table by itself: stamping, matching, forgetting, removing, hot blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

using Keys = std::vector<std::uint64_t>;

Keys joined(Keys head, const Keys& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

TEST(PrefixTable, FindsNothingWhereNothingWasStamped) {
  TestTable t({});
  const auto ids = t.all_ids();
  const auto blocks = t.match(chain(1, 100), ids);
  EXPECT_TRUE(std::all_of(blocks.begin(), blocks.end(), [](auto n) { return n == 0; }));
}

TEST(PrefixTable, AnswersZeroForAPromptWithoutKeys) {
  TestTable t({});
  EXPECT_EQ(t.match_one({}, 3), 0U);
  EXPECT_EQ(t.match_one({}, 3, true), 0U);
}

TEST(PrefixTable, FindsWhatItStampedForPromptsOfEveryLength) {
  for (const std::size_t length : {1U, 2U, 3U, 5U, 6U, 21U, 22U, 63U, 64U, 100U, 1000U, 2048U}) {
    TestTable t({});
    const Keys keys = chain(length, length);
    const StampOutcome outcome = t.stamp(keys, 7);
    EXPECT_EQ(outcome.inserted, length);
    EXPECT_EQ(t.match_one(keys, 7), length);
    EXPECT_EQ(t.match_one(keys, 7, true), length);
    EXPECT_EQ(t.match_one(keys, 8), 0U);
  }
}

TEST(PrefixTable, FindsEveryLengthOfASharedPrefix) {
  TestTable t({});
  const Keys long_keys = chain(5, 300);
  t.stamp(long_keys, 2);
  for (std::size_t shared = 0; shared <= 300; ++shared) {
    const Keys head(long_keys.begin(), long_keys.begin() + static_cast<std::ptrdiff_t>(shared));
    const Keys keys = joined(head, chain(1000 + shared, 17));
    EXPECT_EQ(t.match_one(keys, 2), shared);
    EXPECT_EQ(t.match_one(keys, 2, true), shared);
  }
}

TEST(PrefixTable, GivesEveryCandidateItsOwnLength) {
  TestTable t({.lines = 1 << 17, .endpoint_ids = 90});
  const Keys keys = chain(9, 200);
  std::vector<std::uint32_t> held(90);
  base::Random random(4);
  for (std::uint32_t id = 1; id < 90; ++id) {
    held[id] = random.below(201);
    t.stamp(std::span(keys).first(held[id]), id);
  }
  auto ids = t.all_ids();
  std::reverse(ids.begin(), ids.end());
  const auto blocks = t.match(keys, ids);
  const auto exact = t.match(keys, ids, true);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(blocks[i], held[ids[i]]) << ids[i];
    EXPECT_EQ(exact[i], held[ids[i]]) << ids[i];
  }
}

// Sets of candidates are of the size that fits: one more than each of them, and each to the brim.
TEST(PrefixTable, GivesEveryCandidateItsOwnLengthWhateverTheirNumber) {
  for (const std::uint32_t count :
       {63U, 64U, 65U, 127U, 128U, 129U, 511U, 512U, 513U, 1023U, 1024U, 1025U, 4095U}) {
    TestTable t({.lines = 1 << 15, .endpoint_ids = count + 1});
    const Keys keys = chain(1, 12);
    std::vector<std::uint32_t> held(count + 1);
    base::Random random(count);
    // Few hold anything but the first and the last, so that no line overflows.
    for (std::uint32_t id = 1; id <= count; ++id) {
      const bool holds = id == 1 || id == count || random.below(count) < 40;
      held[id] = holds ? random.below(12) + 1 : 0;
      t.stamp(std::span(keys).first(held[id]), id);
    }
    const auto ids = t.all_ids();
    ASSERT_EQ(ids.size(), count);
    const auto blocks = t.match(keys, ids);
    const auto exact = t.match(keys, ids, true);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(blocks[i], held[ids[i]]) << ids[i] << " of " << count;
      ASSERT_EQ(exact[i], held[ids[i]]) << ids[i] << " of " << count;
    }
  }
}

TEST(PrefixTable, AnswersOnlyForTheCandidatesItIsAskedAbout) {
  TestTable t({});
  const Keys keys = chain(2, 40);
  t.stamp(keys, 3);
  t.stamp(keys, 4);
  EXPECT_EQ(t.match(keys, std::vector<std::uint16_t>{4, 5}), (std::vector<std::uint32_t>{40, 0}));
}

TEST(PrefixTable, TouchesAWordThatIsThereInsteadOfWritingASecond) {
  TestTable t({.ttl_ticks = 100});
  const Keys keys = chain(3, 50);
  t.stamp(keys, 3);
  t.advance_to(t.now + 60);
  const StampOutcome again = t.stamp(keys, 3);
  EXPECT_EQ(again.inserted, 0U);
  EXPECT_EQ(again.touched, 50U);
  EXPECT_EQ(t.census().occupied, 50U);
  t.advance_to(t.now + 60);  // 120 after the first stamp, 60 after the second
  EXPECT_EQ(t.match_one(keys, 3), 50U);
}

TEST(PrefixTable, NeverMovesAStampBack) {
  TestTable t({.ttl_ticks = 100});
  const Keys keys = chain(3, 5);
  t.stamp(keys, 3);
  t.table.stamp(keys, 3, t.stamp_now() - 80, abi::Tier::kAssumed, t.stamp_now());
  t.advance_to(t.now + 50);
  EXPECT_EQ(t.match_one(keys, 3), 5U);
}

TEST(PrefixTable, ForgetsEverythingOlderThanTheHorizon) {
  TestTable t({.ttl_ticks = 100});
  const Keys keys = chain(3, 200);
  t.stamp(keys, 3);
  t.advance_to(t.now + 100);
  EXPECT_EQ(t.match_one(keys, 3), 200U) << "exactly the TTL old is not older";
  t.advance_to(t.now + 1);
  EXPECT_EQ(t.match_one(keys, 3), 0U);
  EXPECT_EQ(t.match_one(keys, 3, true), 0U);
}

TEST(PrefixTable, SeesStampsThatAreALittleAheadOfTheReadersClock) {
  TestTable t({.ttl_ticks = 100});
  const Keys keys = chain(3, 20);
  t.now += 40;
  t.stamp(keys, 3);
  t.now -= 40;
  EXPECT_EQ(t.match_one(keys, 3), 20U);
}

TEST(PrefixTable, DoesNotRevealThePastToAReaderThatWasStoppedForLong) {
  TestTable t({});
  const Keys keys = chain(3, 20);
  t.stamp(keys, 3);
  const std::uint64_t before = t.now;
  t.now += 5000;
  t.reset(3);
  t.now = before;  // the tick was read before the stop, the life word after it
  EXPECT_EQ(t.match_one(keys, 3), 0U);
}

TEST(PrefixTable, RemovesEveryCopyOfABlock) {
  TestTable t({});
  const Keys keys = chain(3, 20);
  t.stamp(keys, 3);
  t.stamp(keys, 4);
  // A second copy, as two workers may leave it: into an empty word of line B.
  const abi::KeyPlace place = abi::place_of(keys[7], t.parts().lines);
  for (std::uint32_t i = 0; i < 8; ++i) {
    std::uint64_t none = 0;
    const auto copy = abi::PrefixWord::make(place.tag, abi::Tier::kAssumed, 3, t.stamp_now());
    if (t.words()[place.line_b * 8 + i].compare_exchange_strong(none, copy.bits)) break;
  }
  EXPECT_EQ(t.table.remove(keys[7], 3, t.stamp_now()), 2U);
  EXPECT_EQ(t.match_one(keys, 3, true), 7U);
  EXPECT_EQ(t.match_one(keys, 4, true), 20U);
  EXPECT_EQ(t.table.remove(keys[7], 3, t.stamp_now()), 0U);
}

TEST(PrefixTable, LetsEventsConfirmWhatAPickAssumed) {
  TestTable t({.ttl_ticks = 100});
  const Keys keys = chain(3, 20);
  t.stamp(keys, 3);
  t.stamp(keys, 3, abi::Tier::kGpu);
  EXPECT_EQ(t.census().occupied, 20U);
  t.advance_to(t.now + 5000);
  EXPECT_EQ(t.match_one(keys, 3), 20U) << "confirmed words have no TTL";
  t.stamp(keys, 3);  // a pick's guess takes nothing back
  t.advance_to(t.now + 5000);
  EXPECT_EQ(t.match_one(keys, 3), 20U);
  t.reset(3);
  EXPECT_EQ(t.match_one(keys, 3), 0U);
  t.now += 1;
  t.stamp(keys, 3);  // the dead confirmed words become assumed ones
  EXPECT_EQ(t.match_one(keys, 3), 20U);
  t.advance_to(t.now + 5000);
  EXPECT_EQ(t.match_one(keys, 3), 0U);
}

TEST(PrefixTable, IgnoresAnEndpointIdThatDoesNotExist) {
  TestTable t({.endpoint_ids = 16});
  const Keys keys = chain(3, 20);
  EXPECT_EQ(t.stamp(keys, 3).inserted, 20U);
  for (const std::uint32_t id : {0U, 16U, 4095U, 1U << 20}) {
    EXPECT_EQ(t.table.stamp(keys, id, t.stamp_now(), abi::Tier::kAssumed, t.stamp_now()).inserted,
              0U);
    EXPECT_EQ(t.table.remove(keys[0], id, t.stamp_now()), 0U);
  }
  EXPECT_EQ(t.census().occupied, 20U);
}

TEST(PrefixTable, ReplacesTheOldestWhenBothLinesAreFullAndCountsIt) {
  TestTable t({.lines = 2, .hot_holders = 0});
  t.lift_load_limit();
  Keys keys;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const Keys key{mixed(i)};
    EXPECT_EQ(t.stamp(key, 3).replaced, 0U);
    keys.push_back(key[0]);
    t.now += 1;
  }
  const StampOutcome outcome = t.stamp(Keys{mixed(99)}, 3);
  EXPECT_EQ(outcome.inserted, 1U);
  EXPECT_EQ(outcome.replaced, 1U);
  EXPECT_EQ(t.match_one(std::span(keys).first(1), 3), 0U) << "the oldest is the one that went";
  for (std::size_t i = 1; i < 16; ++i) EXPECT_EQ(t.match_one(std::span(keys).subspan(i, 1), 3), 1U);
}

TEST(PrefixTable, TakesDeadWordsBeforeItReplacesLiveOnes) {
  TestTable t({.lines = 2, .hot_holders = 0});
  t.lift_load_limit();
  for (std::uint64_t i = 0; i < 16; ++i) t.stamp(Keys{mixed(i)}, i < 4 ? 5 : 3);
  t.reset(5);
  t.now += 1;
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(t.stamp(Keys{mixed(100 + i)}, 3).replaced, 0U);
  EXPECT_EQ(t.stamp(Keys{mixed(200)}, 3).replaced, 1U);
}

TEST(PrefixTable, KeepsABlockThatManyHoldInGroups) {
  TestTable t({.lines = 1 << 18, .endpoint_ids = 301});
  const Keys keys = chain(3, 94);
  std::uint32_t markers = 0;
  for (std::uint32_t id = 1; id <= 300; ++id) markers += t.stamp(keys, id).hot_markers;
  EXPECT_EQ(markers, 94U);
  const auto ids = t.all_ids();
  for (const bool exact : {false, true}) {
    const auto blocks = t.match(keys, ids, exact);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), 94U), 300);
  }
}

TEST(PrefixTable, MeasuresHoldersOfDifferentLengthsUnderAHotPrefix) {
  TestTable t({.lines = 1 << 17, .endpoint_ids = 201});
  const Keys keys = chain(3, 200);
  std::vector<std::uint32_t> held(201);
  base::Random random(11);
  for (std::uint32_t id = 1; id <= 200; ++id) {
    held[id] = id % 3 == 0 ? random.below(60) : 60 + random.below(3) * random.below(141) / 2;
    t.stamp(std::span(keys).first(held[id]), id);
  }
  const auto ids = t.all_ids();
  for (const bool exact : {false, true}) {
    const auto blocks = t.match(keys, ids, exact);
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(blocks[i], held[ids[i]]) << ids[i];
  }
}

TEST(PrefixTable, KeepsAHotBlockFoundWhileAnyHolderTouchesIt) {
  TestTable t({.endpoint_ids = 65, .ttl_ticks = 6000});
  const Keys keys = chain(3, 10);
  for (std::uint32_t id = 1; id <= 64; ++id) t.stamp(keys, id);
  for (int round = 0; round < 10; ++round) {
    t.advance_to(t.now + 5000);
    t.stamp(keys, 64);
    t.sweep_all();
  }
  EXPECT_EQ(t.match_one(keys, 64), 10U);
  EXPECT_EQ(t.match_one(keys, 63), 0U);
  EXPECT_EQ(t.census().live, 10U);
  t.advance_to(t.now + 6001);
  t.sweep_all();
  EXPECT_EQ(t.census().live, 0U);
  EXPECT_EQ(t.census().markers, 0U) << "markers die with their holders";
}

TEST(PrefixTable, RemovesHoldersFromGroupsToo) {
  TestTable t({.endpoint_ids = 65});
  const Keys keys = chain(3, 10);
  for (std::uint32_t id = 1; id <= 64; ++id) t.stamp(keys, id);
  EXPECT_EQ(t.table.remove(keys[4], 60, t.stamp_now()), 1U);
  EXPECT_EQ(t.match_one(keys, 60, true), 4U);
  EXPECT_EQ(t.match_one(keys, 59, true), 10U);
}

TEST(PrefixTable, KeepsNoGroupsWhenTheyAreSwitchedOff) {
  TestTable t({.endpoint_ids = 65, .hot_holders = 0});
  const Keys keys = chain(3, 10);
  StampOutcome outcome;
  for (std::uint32_t id = 1; id <= 64; ++id) outcome += t.stamp(keys, id);
  EXPECT_EQ(outcome.hot_markers, 0U);
  EXPECT_EQ(outcome.replaced, 480U);
  EXPECT_EQ(t.census().live, 160U);
}

TEST(PrefixTable, SurvivesWordsOfAnyContent) {
  TestTable t({.lines = 64, .endpoint_ids = 8});
  base::Random random(77);
  for (int round = 0; round < 200; ++round) {
    for (auto& word : t.words()) word.store(random.next());
    const Keys keys = chain(static_cast<std::uint64_t>(round), 300);
    t.stamp(keys, 3);
    const auto ids = t.all_ids();
    for (const std::uint32_t blocks : t.match(keys, ids)) EXPECT_LE(blocks, 300U);
    t.now += 1;
    t.advance();
    t.sweep_all();
    for (const auto& word : t.words()) {
      EXPECT_LT(abi::PrefixWord{word.load()}.endpoint(), 8U)
          << "words of no endpoint are given back";
    }
  }
}

}  // namespace
}  // namespace pickd::prefix::test

// The sweep: room comes back, counts come right, nothing alive is lost.
#include <gtest/gtest.h>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

// Lines in which `words` of the eight are not empty, counted by hand.
std::uint64_t lines_with_more_than(TestTable& t, std::uint32_t words) {
  std::uint64_t count = 0;
  for (std::size_t line = 0; line < t.words().size() / 8; ++line) {
    std::uint32_t occupied = 0;
    for (std::size_t i = 0; i < 8; ++i) occupied += t.words()[line * 8 + i].load() != 0;
    count += occupied > words;
  }
  return count;
}

TEST(Sweep, GivesDeadWordsBackAndKeepsTheLiving) {
  TestTable t({.lines = 120, .endpoint_ids = 4, .ttl_ticks = 100});
  const auto old_keys = chain(1, 400);
  t.stamp(old_keys, 2);
  t.advance_to(t.now + 90);
  const auto keys = chain(2, 300);
  t.stamp(keys, 2);
  t.advance_to(t.now + 50);
  const SweepOutcome outcome = t.sweep_all();
  EXPECT_EQ(outcome.cleared + t.sweep.totals().dead, 400U);
  EXPECT_GT(outcome.cleared, 200U);
  EXPECT_EQ(outcome.passes, 1U);
  EXPECT_EQ(t.census().occupied, 300U + t.sweep.totals().dead);
  EXPECT_EQ(t.match_one(keys, 2), 300U);
}

TEST(Sweep, LeavesTheDeadOnlyWhereTheirLineHasRoomAndOthersMayTakeIt) {
  TestTable t({.lines = 1000, .endpoint_ids = 4, .ttl_ticks = 100});
  t.stamp(chain(1, 5000), 2);
  t.advance_to(t.now + 200);
  EXPECT_GT(lines_with_more_than(t, 4), 0U);
  const SweepOutcome outcome = t.sweep_all();
  EXPECT_GT(outcome.cleared, 0U);
  EXPECT_EQ(lines_with_more_than(t, 4), 0U);
  EXPECT_EQ(t.sweep.totals().dead, 5000U - outcome.cleared);
  EXPECT_EQ(t.sweep.totals().live, 0U);
  // As much as if they were gone: the same without them replaces no less.
  TestTable empty({.lines = 1000, .endpoint_ids = 4, .ttl_ticks = 100});
  const auto keys = chain(2, 5900);
  EXPECT_LE(t.stamp(keys, 3).replaced, empty.stamp(keys, 3).replaced + 6U);
  EXPECT_GE(t.match_one(keys, 3), 5000U);
}

TEST(Sweep, ClearsAllTheDeadOfATableThatFillsUp) {
  TestTable t({.lines = 1000, .endpoint_ids = 4, .ttl_ticks = 100});
  t.stamp(chain(1, 1500), 2);
  t.advance_to(t.now + 200);
  t.stamp(chain(2, 4100), 3);
  t.advance_to(t.now + 1);
  const std::uint64_t dead = t.census().occupied - 4100U;
  EXPECT_GT(dead, 1000U);
  EXPECT_EQ(t.sweep_all().cleared, dead);
  EXPECT_EQ(t.census().occupied, 4100U);
}

TEST(Sweep, LeavesNoDeadWordUntilItsStampGetsOld) {
  TestTable t({.lines = 1000, .endpoint_ids = 4, .ttl_ticks = 100});
  t.stamp(chain(1, 1500), 2);
  t.advance_to(t.now + 200);
  EXPECT_EQ(t.sweep_all().cleared, 0U);
  for (std::uint64_t hours = 1; hours <= 3; ++hours) {
    t.advance_to(t.now + 3600 * 20);
    EXPECT_EQ(t.sweep_all().cleared, 0U) << hours;
  }
  t.advance_to(t.now + 3600 * 20);
  EXPECT_EQ(t.sweep_all().cleared, 1500U);
  EXPECT_EQ(t.census().occupied, 0U);
}

TEST(Sweep, CountsWhatLivesForEveryEndpoint) {
  TestTable t({.lines = 1 << 14, .endpoint_ids = 64, .ttl_ticks = 1000});
  for (std::uint32_t id = 1; id < 40; ++id) t.stamp(chain(id, 10 * id), id);
  const auto shared = chain(999, 5);
  for (std::uint32_t id = 40; id < 60; ++id) t.stamp(shared, id, abi::Tier::kHost);
  t.advance_to(t.now + 10);
  t.sweep_all();
  for (std::uint32_t id = 1; id < 40; ++id) {
    EXPECT_EQ(t.sweep.live_words(id), 10 * id);
    EXPECT_EQ(t.record(id).live_blocks.load(), 10 * id);
  }
  const SweepTotals& totals = t.sweep.totals();
  EXPECT_EQ(totals.live, 7800U + 100U);
  EXPECT_EQ(totals.confirmed, 100U);
  EXPECT_EQ(totals.markers, 5U);
  EXPECT_EQ(totals.words, 8U << 14);
  EXPECT_EQ(totals.oldest_age_ticks, 10U);
}

TEST(Sweep, WorksInSlicesOfAnySize) {
  TestTable t({.lines = 1000, .endpoint_ids = 4, .ttl_ticks = 100});
  t.stamp(chain(1, 1000), 2);
  t.advance_to(t.now + 200);
  const auto newer = chain(2, 500);
  t.stamp(newer, 2);
  std::uint64_t looked = 0;
  std::uint32_t passes = 0;
  for (int i = 0; i < 34; ++i) {
    const SweepOutcome outcome = t.sweep.slice(t.now, 30);
    looked += outcome.looked;
    passes += outcome.passes;
  }
  EXPECT_EQ(looked, 34U * 30U * 8U);
  EXPECT_EQ(passes, 1U);
  EXPECT_EQ(t.sweep.totals().live, 500U);
  EXPECT_EQ(t.sweep.totals().dead + t.census().live, t.census().occupied);
}

// The counts by age are what capacity is kept by: they must be exact when nothing races, also for
// words that stampers change in lines that the running pass has left behind, and in lines still
// before it.
TEST(Sweep, AgreesWithTheStampersWhereverItsPassStands) {
  TestTable t({.lines = 1 << 10, .endpoint_ids = 4, .ttl_ticks = 5000});
  base::Random random(6);
  std::vector<std::vector<std::uint64_t>> prompts;
  for (std::uint64_t i = 0; i < 30; ++i) prompts.push_back(chain(i, 5 + random.below(40)));
  for (int step = 0; step < 4000; ++step) {
    const auto& prompt = prompts[random.below(30)];
    const std::uint32_t id = 1 + random.below(3);
    if (random.below(10) == 0) {
      for (const std::uint64_t key : prompt) t.table.remove(key, id, t.stamp_now());
    } else {
      t.stamp(prompt, id, random.below(20) == 0 ? abi::Tier::kGpu : abi::Tier::kAssumed);
    }
    t.advance_to(t.now + random.below(3));
    t.sweep.slice(t.now, random.below(200));
    if (step % 50 == 0) {
      const auto bounds = t.census();
      for (std::uint32_t e = 1; e < 4; ++e) {
        EXPECT_GE(t.horizons.live_words(e) + 45.0, static_cast<double>(bounds.by_endpoint[e]));
      }
      t.horizons.recount();
      t.advance();
      const auto census = t.census();
      for (std::uint32_t e = 1; e < 4; ++e) {
        // A bucket of 16 or more ticks that the horizon divides is counted by the share that is
        // left.
        EXPECT_NEAR(t.horizons.live_words(e), static_cast<double>(census.by_endpoint[e]), 45.0)
            << "step " << step;
      }
    }
  }
}

TEST(Sweep, SetsCountsRightThatNobodyKept) {
  TestTable t({.endpoint_ids = 4, .ttl_ticks = 5000});
  PrefixTable untold(t.parts(),
                     nullptr);  // a table whose changes nobody counts: as before a restart
  const auto keys = chain(1, 500);
  untold.stamp(keys, 2, t.stamp_now(), abi::Tier::kAssumed, t.stamp_now());
  t.record(2).capacity_blocks.store(100);
  t.advance();
  EXPECT_EQ(t.horizons.live_words(2), 0);
  t.sweep_all();
  t.advance();
  EXPECT_EQ(t.horizons.live_words(2), 500);
}

TEST(Sweep, SweepsAllAtOnceUntilItHasCountedOnce) {
  TestTable t({.lines = 1 << 12});
  EXPECT_EQ(t.sweep.lines_per_tick(), 1U << 12);
  t.sweep_all();
  EXPECT_LT(t.sweep.lines_per_tick(), 1U << 5);
}

}  // namespace
}  // namespace pickd::prefix::test

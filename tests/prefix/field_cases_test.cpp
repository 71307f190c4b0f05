// Field cases: what went wrong in other routers' indexes, replayed against the table. The numbers
// are those of the project's list of field cases.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

bool long_form() { return std::getenv("LONG_TESTS") != nullptr; }

TEST(FieldCase22, RemovalHidesBatchesThatAreStillQueued) {
  TestTable t({.lines = 1 << 14, .endpoint_ids = 4});
  std::vector<std::vector<std::uint64_t>> batches;
  for (std::uint64_t i = 0; i < 1000; ++i) batches.push_back(chain(i, 8));
  const std::uint32_t stamp = stamp_at(t.now, t.life(1));  // all queued in this tick
  for (std::size_t i = 0; i < 300; ++i) {
    t.table.stamp(batches[i], 1, stamp, abi::Tier::kGpu, t.stamp_now());
  }
  t.reset(1);  // removed
  for (std::size_t i = 200; i < 1000; ++i) {
    t.table.stamp(batches[i], 1, stamp, abi::Tier::kGpu, t.stamp_now());
    ASSERT_EQ(t.match_one(batches[i], 1), 0U);
  }
  for (const auto& batch : batches) ASSERT_EQ(t.match_one(batch, 1), 0U);
  t.now += 1;
  t.reset(1);  // a new generation joins: it starts with nothing, and may hold blocks again
  for (const auto& batch : batches) ASSERT_EQ(t.match_one(batch, 1), 0U);
  t.stamp(batches[0], 1, abi::Tier::kGpu);
  EXPECT_EQ(t.match_one(batches[0], 1), 8U);
}

TEST(FieldCase23, ALateInsertForARemovedEndpointIsDropped) {
  TestTable t({});
  const auto keys = chain(1, 30);
  const std::uint64_t tick = t.now;
  const abi::LifeWord seen = t.life(1);  // the pick
  t.now += 3;
  t.reset(1);  // the removal
  t.table.stamp(keys, 1, stamp_at(tick, seen), abi::Tier::kAssumed, t.stamp_now());
  EXPECT_EQ(t.match_one(keys, 1), 0U);
  t.sweep_all();
  EXPECT_EQ(t.sweep.totals().live, 0U) << "and counts for nothing";
  EXPECT_EQ(t.sweep.totals().dead, 0U) << "nor was it written at all";
}

TEST(FieldCase26, AnEndpointThatComesBackEmptyHasNoPlacements) {
  TestTable t({.endpoint_ids = 4, .ttl_ticks = 36'000});
  std::vector<std::vector<std::uint64_t>> prompts;
  for (std::uint64_t i = 0; i < 484; ++i) {
    prompts.push_back(chain(i, 5));
    t.stamp(prompts.back(), 1);
  }
  t.advance_to(t.now + 1400);  // down for 70 s
  t.reset(1);
  t.advance_to(t.now + 40);
  for (const auto& prompt : prompts) ASSERT_EQ(t.match_one(prompt, 1), 0U);
}

TEST(FieldCase28, ARemovedEndpointsSpaceIsBackWithinOnePass) {
  TestTable t({.lines = 1 << 13, .endpoint_ids = 4});
  const auto keys = chain(1, 10'000);
  t.stamp(keys, 1);
  EXPECT_EQ(t.match_one(keys, 1), 10'000U);
  t.reset(1);
  EXPECT_EQ(t.match_one(keys, 1), 0U);
  t.sweep_all();
  EXPECT_EQ(t.record(1).live_blocks.load(), 0U);
  t.advance_to(t.now + 64);  // within which every endpoint is counted anew
  // All of it: another endpoint gets as much as the table takes, and nothing that lives gives way.
  const auto others = chain(2, 40'000);
  EXPECT_EQ(t.stamp(others, 2).replaced, 0U);
  EXPECT_EQ(t.match_one(others, 2, true), 40'000U);
  EXPECT_NEAR(t.true_load(), 0.61, 0.01);
}

TEST(FieldCase35, DistinctChainsWithSharedPrefixesLeaveNothingBehind) {
  TestTable t({.lines = 1 << 15, .endpoint_ids = 4});
  t.record(1).capacity_blocks.store(100'000);
  const std::uint64_t chains = long_form() ? 10'000'000 : 200'000;
  base::Random random(1);
  std::uint64_t highest = 0;
  std::uint64_t replaced = 0;
  for (std::uint64_t i = 0; i < chains; ++i) {
    // A short random prefix that others share, and a suffix of its own.
    std::vector<std::uint64_t> values(1 + random.below(4));
    for (auto& value : values) value = random.below(10);
    values.push_back(1'000'000 + i);
    values.push_back(i);
    replaced += t.stamp(chain(1, values), 1).replaced;
    if (i % 64 != 0) continue;
    t.advance_to(t.now + 1);
    t.sweep.slice(t.now, t.sweep.lines_per_tick());
    if (i % 8192 == 0) highest = std::max(highest, t.census().occupied);
  }
  // At most four words of a line, and what came in one pass of the sweep on top.
  EXPECT_LE(highest, 4U * (1U << 15) + 20'000U);
  t.sweep_all();
  EXPECT_LE(t.census().live, 100'000U);
  EXPECT_GE(t.census().live, 90'000U);
  EXPECT_EQ(replaced, 0U) << "the dead take no room from the living";
}

TEST(FieldCase37, RemovalsThatRaceWithTouchesLeaveNothingUnaccounted) {
  TestTable t({.lines = 1 << 12, .endpoint_ids = 4});
  const auto keys = chain(1, 200);
  std::thread toucher([&] {
    for (int i = 0; i < 500; ++i) {
      t.table.stamp(std::span(keys).first(100 + static_cast<std::size_t>(i) % 100), 1,
                    t.stamp_now() + static_cast<std::uint32_t>(i) % 8, abi::Tier::kGpu,
                    t.stamp_now());
    }
  });
  for (int i = 0; i < 500; ++i) {
    for (std::size_t at = 150; at < 200; ++at) t.table.remove(keys[at], 1, t.stamp_now());
  }
  toucher.join();
  for (std::size_t at = 120; at < 200; ++at) t.table.remove(keys[at], 1, t.stamp_now());
  EXPECT_EQ(t.match_one(keys, 1, true), 120U);
  EXPECT_EQ(t.census().occupied, 120U);
}

TEST(FieldCase38, RemovingTheParentFirstHarmsNobody) {
  TestTable t({});
  const auto keys = chain(1, 3);
  t.stamp(keys, 1, abi::Tier::kGpu);
  EXPECT_EQ(t.table.remove(keys[0], 1, t.stamp_now()), 1U);
  EXPECT_EQ(t.match_one(keys, 1, true), 0U);
  EXPECT_EQ(t.table.remove(keys[1], 1, t.stamp_now()), 1U);
  EXPECT_EQ(t.table.remove(keys[2], 1, t.stamp_now()), 1U);
  EXPECT_EQ(t.table.remove(keys[2], 1, t.stamp_now()), 0U);
  t.stamp(keys, 1, abi::Tier::kGpu);
  EXPECT_EQ(t.match_one(keys, 1, true), 3U);
}

TEST(FieldCase40, SmallBlocksOfManyLongPromptsTakeNoMoreMemoryThanWasStated) {
  TestTable t({.lines = 1 << 14, .endpoint_ids = 101, .ttl_ticks = 36'000});
  // 128k tokens in the engine's blocks of 16, on each of a hundred: six times what there is room
  // for.
  std::vector<std::uint64_t> newest;
  for (std::uint32_t id = 1; id <= 100; ++id) {
    newest = chain(id, 131'072 / 16);
    t.stamp(newest, id);
    t.advance_to(t.now + 1);
    t.sweep.slice(t.now, t.sweep.lines_per_tick());
    ASSERT_LE(t.true_load(), 0.76) << "endpoint " << id;
  }
  EXPECT_GE(t.match_one(newest, 100), newest.size() * 99 / 100) << "the newest has its room";
  EXPECT_EQ(t.match_one(chain(1, 131'072 / 16), 1), 0U) << "and the oldest had to go";
}

TEST(FieldCase41, ACapacityOfTenBlocksRemembersTheNewestTen) {
  TestTable t({});
  t.record(1).capacity_blocks.store(10);
  std::vector<std::vector<std::uint64_t>> blocks;
  for (std::uint64_t i = 0; i < 100; ++i) {
    blocks.push_back(chain(i, 1));
    t.stamp(blocks.back(), 1);
    t.advance_to(t.now + 1);
  }
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(t.match_one(blocks[i], 1), i < 90 ? 0U : 1U) << i;
}

TEST(FieldCase43, APrefixThatIsMatchedEverySecondSurvives) {
  TestTable t({.endpoint_ids = 4, .ttl_ticks = 0});
  t.record(1).capacity_blocks.store(100);
  const auto hot = chain(0, 1);
  for (std::uint64_t i = 0; i < 990; ++i) {
    if (i % 2 == 0) {  // ten ticks each: every second
      EXPECT_TRUE(i == 0 || t.match_one(hot, 1) == 1) << "at " << i;
      t.stamp(hot, 1);
    }
    t.stamp(chain(1 + i, 1), 1);
    t.advance_to(t.now + 10);
    t.sweep.slice(t.now, t.sweep.lines_per_tick());
  }
  EXPECT_EQ(t.match_one(hot, 1), 1U);
  EXPECT_LE(t.census().by_endpoint[1], 100U);
}

}  // namespace
}  // namespace pickd::prefix::test

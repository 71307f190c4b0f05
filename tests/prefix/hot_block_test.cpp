// Hot blocks: a prompt that every endpoint holds.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

class SharedPrompt : public testing::TestWithParam<std::uint32_t> {};

// A table of 256 MiB as by default would hide everything; 64 MiB at 500 endpoints are an eighth of
// that.
TEST_P(SharedPrompt, IsFoundForMoreThan999In1000Endpoints) {
  const std::uint32_t endpoints = GetParam();
  TestTable t({.lines = 1 << 20, .endpoint_ids = endpoints + 1});
  const auto shared = chain(1, 94);
  base::Random random(3);
  // Every endpoint holds the prompt and 40 conversations of its own behind it.
  std::vector<std::vector<std::uint64_t>> own(endpoints + 1);
  StampOutcome outcome;
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t id = 1; id <= endpoints; ++id) {
      auto keys = shared;
      for (const std::uint64_t key : chain(1'000'000 + id * 100 + round, 20 + random.below(200))) {
        keys.push_back(key);
      }
      outcome += t.stamp(keys, id);
      own[id] = keys;
    }
    t.advance_to(t.now + 40);
    t.sweep.slice(t.now, t.sweep.lines_per_tick());
  }
  EXPECT_EQ(outcome.hot_markers, 94U);
  const auto ids = t.all_ids();
  for (const bool exact : {false, true}) {
    const auto blocks = t.match(shared, ids, exact);
    const auto found = static_cast<double>(std::count(blocks.begin(), blocks.end(), 94U));
    EXPECT_GT(found, 0.999 * endpoints) << (exact ? "exact" : "gallop");
  }
  // And each endpoint's own conversation on top of it, among all candidates.
  std::uint32_t complete = 0;
  for (std::uint32_t id = 1; id <= endpoints; ++id) {
    const auto blocks = t.match(own[id], ids);
    complete += blocks[id - 1] == own[id].size();
  }
  EXPECT_GT(complete, 0.999 * endpoints);
}

INSTANTIATE_TEST_SUITE_P(HotBlocks, SharedPrompt, testing::Values(500U, 1000U));

TEST(HotBlocks, DestroyTheTableWithoutGroups) {
  // Why there are groups: the same load without them. If this changes, they can go.
  TestTable t({.lines = 1 << 16, .endpoint_ids = 501, .hot_holders = 0});
  const auto shared = chain(1, 94);
  for (std::uint32_t id = 1; id <= 500; ++id) t.stamp(shared, id);
  const auto ids = t.all_ids();
  const auto blocks = t.match(shared, ids, true);
  EXPECT_LT(std::count(blocks.begin(), blocks.end(), 94U), 100);
}

TEST(HotBlocks, AreFoundAgainAfterTheirMarkerIsLost) {
  TestTable t({.endpoint_ids = 65});
  const auto keys = chain(3, 4);
  for (std::uint32_t id = 1; id <= 64; ++id) t.stamp(keys, id);
  for (auto& word : t.words()) {
    if (abi::PrefixWord{word.load()}.endpoint() == abi::kMarkerEndpoint) word.store(0);
  }
  EXPECT_EQ(t.match_one(keys, 64), 0U);
  EXPECT_EQ(t.match_one(keys, 1), 4U) << "those in the home lines do not need it";
  EXPECT_EQ(t.stamp(keys, 64).hot_markers, 4U);
  EXPECT_EQ(t.match_one(keys, 63), 4U);
}

TEST(HotBlocks, OutliveFullLinesThatReplaceTheirOldest) {
  TestTable t({.lines = 64, .endpoint_ids = 33});
  const auto keys = chain(3, 2);
  for (std::uint32_t id = 1; id <= 20; ++id) t.stamp(keys, id);
  base::Random random(3);
  for (int i = 0; i < 2000; ++i) {
    t.now += 1;
    t.stamp(std::vector<std::uint64_t>{random.next()}, 21);
    t.stamp(keys, 20);
  }
  EXPECT_EQ(t.match_one(keys, 20), 2U);
}

}  // namespace
}  // namespace pickd::prefix::test

// The KV cache of the simulated engine against a model that is too simple to be wrong.
#include "tools/enginesim/block_cache.hpp"

#include <gtest/gtest.h>

#include <map>

#include "daemon/base/random.hpp"

namespace pickd::enginesim {
namespace {

// Takes blocks for `keys`, shared where present, and gives them back tail first, as a sequence
// does.
std::vector<BlockId> take(BlockCache& cache, const std::vector<BlockKey>& keys) {
  const std::size_t hits = cache.match(keys);
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < hits; ++i) blocks.push_back(cache.pin(keys[i]));
  for (std::size_t i = hits; i < keys.size(); ++i) {
    blocks.push_back(cache.allocate().value());
    cache.publish(blocks.back(), keys[i]);
  }
  return blocks;
}

void give_back(BlockCache& cache, std::vector<BlockId> blocks) {
  for (; !blocks.empty(); blocks.pop_back()) cache.release(blocks.back());
}

TEST(BlockCache, FindsTheLeadingKeysOnly) {
  BlockCache cache(8);
  give_back(cache, take(cache, {1, 2, 3}));
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1, 2, 3, 4}), 3U);
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1, 9, 3}), 1U);
  EXPECT_EQ(cache.match(std::vector<BlockKey>{9, 2, 3}), 0U);
}

TEST(BlockCache, EvictsTheTailOfASequenceBeforeItsHead) {
  BlockCache cache(4);
  give_back(cache, take(cache, {1, 2, 3, 4}));
  take(cache, {11});
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1, 2, 3, 4}), 3U);
  take(cache, {12});
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1, 2, 3, 4}), 2U);
}

TEST(BlockCache, EvictsTheLeastRecentlyUsedSequenceFirst) {
  BlockCache cache(4);
  give_back(cache, take(cache, {1, 2}));
  give_back(cache, take(cache, {3, 4}));
  give_back(cache, take(cache, {1, 2}));  // used again: 3 and 4 are older now
  take(cache, {11, 12});
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1, 2}), 2U);
  EXPECT_EQ(cache.match(std::vector<BlockKey>{3, 4}), 0U);
}

TEST(BlockCache, NeverEvictsABlockThatIsReferenced) {
  BlockCache cache(3);
  take(cache, {1, 2, 3});
  EXPECT_FALSE(cache.allocate().has_value());
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1, 2, 3}), 3U);
}

TEST(BlockCache, KeepsASecondCopyOfAKeyPrivate) {
  BlockCache cache(2);
  const BlockId first = *cache.allocate();
  const BlockId second = *cache.allocate();
  cache.publish(first, 7);
  cache.publish(second, 7);
  cache.release(second);
  EXPECT_EQ(cache.counts().free, 1U);  // nobody could find it: not cached
  cache.release(first);
  EXPECT_EQ(cache.counts().cached, 1U);
}

TEST(BlockCache, ForgetsContentButLeavesUsedBlocksWithTheirSequences) {
  BlockCache cache(4);
  give_back(cache, take(cache, {1, 2}));
  const std::vector<BlockId> used = take(cache, {3});
  cache.forget();
  EXPECT_EQ(cache.match(std::vector<BlockKey>{1}), 0U);
  EXPECT_EQ(cache.match(std::vector<BlockKey>{3}), 0U);
  EXPECT_EQ(cache.counts().used, 1U);
  EXPECT_EQ(cache.counts().free, 3U);
  give_back(cache, used);
  EXPECT_EQ(cache.counts().free, 4U);
}

TEST(BlockCache, ConservesBlocksUnderRandomOperations) {
  constexpr std::uint32_t kBlocks = 24;
  BlockCache cache(kBlocks);
  base::Random random(42);
  std::map<BlockId, std::uint32_t> references;  // the model: how often each block is held
  std::vector<std::vector<BlockId>> sequences;
  for (int round = 0; round < 20'000; ++round) {
    const std::uint32_t action = random.below(100);
    if (action < 50) {
      // Four families of chains, so that sequences share heads of different lengths.
      const BlockKey family = (1 + random.below(4)) * 1000;
      std::vector<BlockKey> keys;
      for (std::uint32_t i = 0, length = 1 + random.below(6); i < length; ++i)
        keys.push_back(family + i);
      const std::size_t hits = cache.match(keys);
      const std::span<const BlockKey> found(keys.data(), hits);
      if (keys.size() - hits + cache.count_unreferenced(found) > cache.available()) continue;
      sequences.push_back(take(cache, keys));
      for (const BlockId block : sequences.back()) ++references[block];
    } else if (action < 99 && !sequences.empty()) {
      const std::size_t victim = random.below(static_cast<std::uint32_t>(sequences.size()));
      for (const BlockId block : sequences[victim]) {
        if (--references[block] == 0) references.erase(block);
      }
      give_back(cache, sequences[victim]);
      sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(victim));
    } else if (action == 99) {
      cache.forget();
    }
    const BlockCounts counts = cache.counts();
    ASSERT_EQ(counts.free + counts.used + counts.cached, kBlocks);
    ASSERT_EQ(counts.used, references.size());
  }
  for (const auto& sequence : sequences) give_back(cache, sequence);
  // Every block can still be had: none was lost, none is listed twice.
  std::map<BlockId, int> seen;
  while (const auto block = cache.allocate()) ++seen[*block];
  EXPECT_EQ(seen.size(), kBlocks);
}

}  // namespace
}  // namespace pickd::enginesim

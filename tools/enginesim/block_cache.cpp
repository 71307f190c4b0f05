// The paged KV cache. See block_cache.hpp.
#include "tools/enginesim/block_cache.hpp"

#include <cassert>
#include <limits>

namespace pickd::enginesim {

namespace {
constexpr BlockId kNone = std::numeric_limits<BlockId>::max();
}

BlockCache::BlockCache(std::uint32_t blocks) : blocks_(blocks), oldest_(kNone), youngest_(kNone) {
  free_.reserve(blocks);
  by_key_.reserve(blocks);
  for (std::uint32_t block = blocks; block > 0; --block) free_.push_back(block - 1);
  counts_.free = blocks;
}

std::size_t BlockCache::match(std::span<const BlockKey> keys) const {
  std::size_t matched = 0;
  while (matched < keys.size() && by_key_.contains(keys[matched])) ++matched;
  return matched;
}

std::uint32_t BlockCache::count_unreferenced(std::span<const BlockKey> keys) const {
  std::uint32_t count = 0;
  for (const BlockKey key : keys) count += blocks_[by_key_.at(key)].references == 0;
  return count;
}

BlockId BlockCache::pin(BlockKey key) {
  const BlockId id = by_key_.at(key);
  if (blocks_[id].references++ == 0) {
    unlink(id);
    --counts_.cached;
    ++counts_.used;
  }
  return id;
}

std::optional<BlockId> BlockCache::allocate() {
  BlockId id;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
    --counts_.free;
  } else if (oldest_ != kNone) {
    id = oldest_;
    unlink(id);
    by_key_.erase(blocks_[id].key);
    blocks_[id].key = 0;
    --counts_.cached;
  } else {
    return std::nullopt;
  }
  blocks_[id].references = 1;
  ++counts_.used;
  return id;
}

void BlockCache::publish(BlockId block, BlockKey key) {
  assert(blocks_[block].references > 0 && blocks_[block].key == 0);
  if (key != 0 && by_key_.emplace(key, block).second) blocks_[block].key = key;
}

void BlockCache::release(BlockId block) {
  assert(blocks_[block].references > 0);
  if (--blocks_[block].references > 0) return;
  --counts_.used;
  if (blocks_[block].key == 0) {
    free_.push_back(block);
    ++counts_.free;
  } else {
    append(block);
    ++counts_.cached;
  }
}

void BlockCache::forget() {
  by_key_.clear();
  for (BlockId id = 0; id < blocks_.size(); ++id) {
    if (blocks_[id].key == 0) continue;
    blocks_[id].key = 0;
    if (blocks_[id].references > 0) continue;
    free_.push_back(id);
    ++counts_.free;
    --counts_.cached;
  }
  oldest_ = youngest_ = kNone;
}

void BlockCache::append(BlockId block) {
  blocks_[block].older = youngest_;
  blocks_[block].younger = kNone;
  (youngest_ == kNone ? oldest_ : blocks_[youngest_].younger) = block;
  youngest_ = block;
}

void BlockCache::unlink(BlockId block) {
  const Block& gone = blocks_[block];
  (gone.older == kNone ? oldest_ : blocks_[gone.older].younger) = gone.younger;
  (gone.younger == kNone ? youngest_ : blocks_[gone.younger].older) = gone.older;
}

}  // namespace pickd::enginesim

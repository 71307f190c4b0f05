// BlockCache: the paged KV cache of one engine. Counts, shares and forgets blocks; holds no
// content, reads no clock and knows nothing of requests.
//
// A block is in one of three states, and the three counts always add up to the total:
//   free    nothing in it
//   used    referenced by at least one sequence
//   cached  referenced by nobody, but its content may be found again by its key; in a list from
//           the one that was released longest ago
// New blocks come from `free`, then from the old end of the cached list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace pickd::enginesim {

// Names the content of a full block and of everything before it; 0 = none.
using BlockKey = std::uint64_t;
using BlockId = std::uint32_t;

struct BlockCounts {
  std::uint32_t free = 0;
  std::uint32_t used = 0;
  std::uint32_t cached = 0;
};

class BlockCache {
 public:
  explicit BlockCache(std::uint32_t blocks);

  // How many of the leading `keys` are present.
  std::size_t match(std::span<const BlockKey> keys) const;

  // How many of `keys`, all present, nobody references: pinning them takes that many from
  // available().
  std::uint32_t count_unreferenced(std::span<const BlockKey> keys) const;

  // Adds a reference to the block of a present key.
  BlockId pin(BlockKey key);

  // A block with one reference and no key, or nothing when every block is used.
  std::optional<BlockId> allocate();

  // From now on `block` is found under `key`. When another block is found there already, `block`
  // stays a private copy.
  void publish(BlockId block, BlockKey key);

  // Takes a reference back. The last one puts the block at the young end of the cached list, or
  // makes it free when it has no key. Release the tail of a sequence first, so that its head lives
  // longest.
  void release(BlockId block);

  // Forgets all content. Used blocks stay with their sequences, but nobody finds them any more.
  void forget();

  BlockCounts counts() const { return counts_; }
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t available() const { return counts_.free + counts_.cached; }

 private:
  struct Block {
    BlockKey key = 0;
    std::uint32_t references = 0;
    BlockId older = 0;  // neighbours in the cached list
    BlockId younger = 0;
  };

  void append(BlockId block);
  void unlink(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;
  std::unordered_map<BlockKey, BlockId> by_key_;
  BlockId oldest_;
  BlockId youngest_;
  BlockCounts counts_;
};

}  // namespace pickd::enginesim

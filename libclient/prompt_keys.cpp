// Prompts into prefix keys: see prompt_keys.hpp.
#include "libclient/prompt_keys.hpp"

#include <bit>
#include <cstring>

#include "abi/limits.hpp"

namespace pickd::client {

static_assert(std::endian::native == std::endian::little,
              "blocks of token ids are hashed where they lie");

namespace {

constexpr std::size_t kBlockBytesMax = std::size_t{abi::kBlockTokensMax} * abi::kBytesPerToken;

// Hands out a prompt's bytes in pieces of the wanted size.
class Cursor {
 public:
  explicit Cursor(const Prompt& prompt)
      : segment_(prompt.segments), end_(segment_ + prompt.segment_count) {}

  // The next `size` bytes: in place, or gathered in `scratch`. The prompt has that many left.
  const unsigned char* take(std::size_t size, unsigned char* scratch) {
    skip_finished();
    if (size == 0) return scratch;
    if (segment_->size - at_ >= size) {
      const unsigned char* bytes = static_cast<const unsigned char*>(segment_->data) + at_;
      at_ += size;
      return bytes;
    }
    std::size_t gathered = 0;
    while (gathered < size) {
      skip_finished();
      const std::size_t left = segment_->size - at_;
      const std::size_t part = left < size - gathered ? left : size - gathered;
      std::memcpy(scratch + gathered, static_cast<const unsigned char*>(segment_->data) + at_,
                  part);
      gathered += part;
      at_ += part;
    }
    return scratch;
  }

 private:
  void skip_finished() {
    while (segment_ != end_ && segment_->size == at_) {
      ++segment_;
      at_ = 0;
    }
  }

  const pickd_slice* segment_;
  const pickd_slice* end_;
  std::size_t at_ = 0;  // in *segment_
};

}  // namespace

std::uint64_t count_keys(const Prompt& prompt, const abi::KeyAlgorithm& algorithm) {
  const std::uint64_t full = prompt.bytes / algorithm.block_bytes;
  if (algorithm.tail == 0) return full;
  const std::uint64_t blocks = full + (prompt.bytes % algorithm.block_bytes != 0 ? 1 : 0);
  if (prompt.extra_count == 0) return blocks;
  const std::uint64_t last =
      prompt.extra_offset(prompt.extra_count - 1) / algorithm.block_bytes + 1;
  return last > blocks ? last : blocks;
}

void hash_prompt(const abi::KeyHasher& hasher, const abi::KeyAlgorithm& algorithm,
                 std::uint64_t root, const Prompt& prompt, std::uint32_t key_count,
                 std::uint64_t* keys) {
  alignas(64) unsigned char scratch[kBlockBytesMax];
  const std::size_t block_bytes = algorithm.block_bytes;
  Cursor cursor(prompt);
  std::uint64_t left = prompt.bytes;
  std::uint64_t key = root;
  std::size_t next_extra = 0;
  for (std::uint32_t block = 0; block < key_count; ++block) {
    const std::size_t size = left < block_bytes ? static_cast<std::size_t>(left) : block_bytes;
    std::uint64_t hash = hasher.hash(cursor.take(size, scratch), size);
    left -= size;
    const std::uint64_t block_at = std::uint64_t{block} * block_bytes;
    for (; next_extra < prompt.extra_count; ++next_extra) {
      const std::uint64_t offset = prompt.extra_offset(next_extra) - block_at;
      if (offset >= block_bytes) break;
      const pickd_slice& digest = prompt.extra(next_extra).digest;
      hash = hasher.with_extra(hash, static_cast<std::uint32_t>(offset), digest.data, digest.size);
    }
    key = hasher.chain(key, hash);
    keys[block] = key;
  }
}

}  // namespace pickd::client

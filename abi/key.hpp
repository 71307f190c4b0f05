// Prefix keys: how a prompt becomes a chain of 64-bit block keys.
//
//   root    = XXH3(frame: algorithm, block bytes, |model| model, |salt| salt)      length-prefixed
//   h[i]    = XXH3(bytes of block i)                 independent of its neighbours: they overlap
//   key[i]  = mix(key[i - 1], h[i])                  one multiply on the serial chain
//
// XXH3 runs with the state segment's secret, so keys cannot be constructed by a client that does
// not hold it, and they differ from one state file to the next. The block that holds only the tail
// of a prompt is hashed too (XXH3 takes the length in), so two prompts that differ in the tail
// differ. An adapter replaces the model's name in the root: an adapter's KV cache is its own.
//
// Both sides of the contract use this header; LAYOUT.md specifies it to the byte.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/limits.hpp"

namespace pickd::abi {

enum class KeyKind : std::uint8_t { kText = 1, kTokens = 2 };

// One entry of the header's list of accepted key algorithms.
struct KeyAlgorithm {
  std::uint8_t id;    // names the algorithm in a submission; 0 = unused entry
  KeyKind kind;       // text: blocks of bytes; tokens: blocks of little-endian 32-bit ids
  std::uint8_t tail;  // 1 = the last, partial block is hashed too
  std::uint8_t reserved;
  std::uint32_t block_bytes;  // bytes of one block, of text or of ids
};
static_assert(sizeof(KeyAlgorithm) == 8);

inline std::uint64_t key_load64(const void* from) {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline std::uint64_t key_fold_multiply(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

class KeyHasher {
 public:
  // `secret` points to kHashSecretBytes bytes that outlive the hasher.
  explicit KeyHasher(const std::uint8_t* secret)
      : secret_(secret),
        left_(key_load64(secret + 136) | 1),
        right_(key_load64(secret + 144) | 1) {}

  std::uint64_t hash(const void* bytes, std::size_t size) const {
    return XXH3_64bits_withSecret(bytes, size, secret_, kHashSecretBytes);
  }

  // Chains `block_hash` on `parent`. Not commutative: the operands meet different constants.
  std::uint64_t chain(std::uint64_t parent, std::uint64_t block_hash) const {
    return key_fold_multiply(parent ^ left_, block_hash + right_) + block_hash;
  }

  // Content that is not text (an image, audio) at `offset_bytes` of its block, named by a digest.
  std::uint64_t with_extra(std::uint64_t block_hash, std::uint32_t offset_bytes, const void* digest,
                           std::size_t digest_size) const {
    return chain(block_hash ^ offset_bytes, hash(digest, digest_size));
  }

  // The root of a chain. `model` is the adapter's name where one is used.
  std::uint64_t root(const KeyAlgorithm& algorithm, const void* model, std::size_t model_size,
                     const void* salt, std::size_t salt_size) const {
    unsigned char frame[8 + 4 + kModelBytesMax + 4 + 8];
    std::size_t at = 0;
    const auto put = [&](const void* from, std::size_t size) {
      if (size != 0) std::memcpy(frame + at, from, size);
      at += size;
    };
    const auto put_length = [&](std::size_t size) {
      const auto length = static_cast<std::uint32_t>(size);
      put(&length, sizeof length);
    };
    const std::uint64_t salt_hash = hash(salt, salt_size);  // a salt may be of any length
    if (model_size > kModelBytesMax) model_size = kModelBytesMax;
    put(&algorithm, sizeof algorithm);
    put_length(model_size);
    put(model, model_size);
    put_length(salt_size);
    put(&salt_hash, sizeof salt_hash);
    return hash(frame, at);
  }

 private:
  const std::uint8_t* secret_;
  std::uint64_t left_;
  std::uint64_t right_;
};

}  // namespace pickd::abi

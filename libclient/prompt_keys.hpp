// Prompts into prefix keys: cuts a prompt into blocks and chains their hashes (abi/key.hpp has the
// primitive). Knows neither rings nor the daemon; reads the caller's memory and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/key.hpp"
#include "pickd/pickd.h"

namespace pickd::client {

// A prompt as the hasher sees it: bytes in segments. Token ids are one segment of 4-byte ids.
struct Prompt {
  abi::KeyKind kind = abi::KeyKind::kText;
  const pickd_slice* segments = nullptr;
  std::size_t segment_count = 0;
  std::uint64_t bytes = 0;  // of all segments

  // Content that is not text, in order of offset. Element i lies at extras + i * extra_stride.
  const void* extras = nullptr;
  std::size_t extra_count = 0;
  std::size_t extra_stride = 0;

  const pickd_extra& extra(std::size_t index) const {
    return *reinterpret_cast<const pickd_extra*>(static_cast<const char*>(extras) +
                                                 index * extra_stride);
  }
  // Where an extra stands, in bytes.
  std::uint64_t extra_offset(std::size_t index) const {
    const std::uint64_t unit = kind == abi::KeyKind::kTokens ? sizeof(std::uint32_t) : 1;
    return extra(index).offset * unit;
  }
};

// How many keys the whole prompt has under `algorithm`: one a block, the tail included if the
// algorithm says so. An extra that stands right at the end of the last full block makes a block of
// its own, without bytes: "text" and "text, image" must differ.
std::uint64_t count_keys(const Prompt& prompt, const abi::KeyAlgorithm& algorithm);

// Writes the first `key_count` keys (at most count_keys()) of the chain that starts at `root`. A
// block that lies in one segment is hashed where it lies; others are put together on the stack.
void hash_prompt(const abi::KeyHasher& hasher, const abi::KeyAlgorithm& algorithm,
                 std::uint64_t root, const Prompt& prompt, std::uint32_t key_count,
                 std::uint64_t* keys);

}  // namespace pickd::client

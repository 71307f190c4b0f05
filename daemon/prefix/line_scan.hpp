// Looking at the two lines of a key: prefetch, load, compare. The innermost code of the prefix table;
// knows words and tags, not what they mean. Everything here must be inlined: gcc 12 drops
// __builtin_prefetch from a helper that it does not inline, which costs a factor of four.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/prefix_word.hpp"

#define PICKD_INLINE inline __attribute__((always_inline))

namespace pickd::prefix {

using WordRef = std::atomic<std::uint64_t>*;

inline constexpr std::uint32_t kWordsPerPlace = 2 * abi::kWordsPerLine;
inline constexpr std::uint32_t kTagShift = 34;

PICKD_INLINE void prefetch_for_read(const void* line) { __builtin_prefetch(line, 0, 3); }
PICKD_INLINE void prefetch_for_write(const void* line) { __builtin_prefetch(line, 1, 3); }

// The sixteen words of a key, loaded once, as bit sets: word i of line A is bit i, of line B bit 8 + i.
struct PlaceView {
  std::uint64_t words[kWordsPerPlace];
  std::uint32_t tagged = 0;  // words that carry the key's tag
  std::uint32_t empty = 0;
};

// Words with the tag of `place`. Relaxed loads: a word is complete in itself, nothing hangs on it.
PICKD_INLINE std::uint32_t load_tagged(WordRef line_a, WordRef line_b, std::uint64_t tag,
                                       std::uint64_t* words) {
  std::uint32_t tagged = 0;
  for (std::uint32_t i = 0; i < abi::kWordsPerLine; ++i) {
    words[i] = line_a[i].load(std::memory_order_relaxed);
    tagged |= static_cast<std::uint32_t>((words[i] >> kTagShift) == tag) << i;
  }
  for (std::uint32_t i = 0; i < abi::kWordsPerLine; ++i) {
    const std::uint32_t at = abi::kWordsPerLine + i;
    words[at] = line_b[i].load(std::memory_order_relaxed);
    tagged |= static_cast<std::uint32_t>((words[at] >> kTagShift) == tag) << at;
  }
  return tagged;
}

PICKD_INLINE void load_place(WordRef line_a, WordRef line_b, std::uint64_t tag, PlaceView& view) {
  view.tagged = load_tagged(line_a, line_b, tag, view.words);
  std::uint32_t empty = 0;
  for (std::uint32_t i = 0; i < kWordsPerPlace; ++i) {
    empty |= static_cast<std::uint32_t>(view.words[i] == 0) << i;
  }
  view.empty = empty;
}

}  // namespace pickd::prefix

// Looking at the two lines of a key: prefetch, load, compare. The innermost code of the prefix
// table; knows words and tags, not what they mean. Everything here must be inlined: gcc 12 drops
// __builtin_prefetch from a helper that it does not inline, which costs a factor of four.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/fence.hpp"
#include "abi/prefix_word.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define PICKD_INLINE inline __attribute__((always_inline))

namespace pickd::prefix {

using WordRef = std::atomic<std::uint64_t>*;

inline constexpr std::uint32_t kWordsPerPlace = 2 * abi::kWordsPerLine;
inline constexpr std::uint32_t kTagShift = 34;

PICKD_INLINE void prefetch_for_read(const void* line) { __builtin_prefetch(line, 0, 3); }
PICKD_INLINE void prefetch_for_write(const void* line) { __builtin_prefetch(line, 1, 3); }

// Which of the sixteen words of a key carry its tag, and which none: word i of line A is bit i, of
// line B bit 8 + i. Tag 0 is never written, so a word without a tag is empty (or damaged, and free
// to take).
struct PlaceScan {
  std::uint32_t tagged;
  std::uint32_t empty;
};

// The same, and among the tagged words those of one endpoint and the markers.
struct HolderScan {
  std::uint32_t tagged;
  std::uint32_t empty;
  std::uint32_t own;
  std::uint32_t marker;
};

// Distances from the oldest stamp that there can be.
struct AgeLimits {
  std::uint32_t forgotten;  // below it no assumed word of any endpoint lives
  std::uint32_t old;        // below it a word must not be left dead where it stands
};

// Words that are below a limit; those of empty words mean nothing. `forgotten` has assumed words of
// endpoints only.
struct AgeScan {
  std::uint32_t forgotten;
  std::uint32_t old;
};

#if defined(__SSE2__) && !defined(PICKD_TSAN)

// Tags of four words, in 32-bit lanes.
PICKD_INLINE __m128i four_tags(const __m128i* from) {
  const __m128 low = _mm_castsi128_ps(_mm_load_si128(from));
  const __m128 high = _mm_castsi128_ps(_mm_load_si128(from + 1));
  return _mm_srli_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1))), 2);
}

// Endpoints of four words, in 32-bit lanes.
PICKD_INLINE __m128i four_endpoints(const __m128i* from) {
  const __m128 low = _mm_castsi128_ps(_mm_load_si128(from));
  const __m128 high = _mm_castsi128_ps(_mm_load_si128(from + 1));
  return _mm_srli_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0))),
                        abi::kStampBits);
}

// Sixteen lanes that equal `wanted`, as bits.
PICKD_INLINE std::uint32_t equal_lanes(const __m128i (&lanes)[4], std::uint32_t wanted) {
  const __m128i to = _mm_set1_epi32(static_cast<int>(wanted));
  const __m128i in_a =
      _mm_packs_epi32(_mm_cmpeq_epi32(lanes[0], to), _mm_cmpeq_epi32(lanes[1], to));
  const __m128i in_b =
      _mm_packs_epi32(_mm_cmpeq_epi32(lanes[2], to), _mm_cmpeq_epi32(lanes[3], to));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(in_a, in_b)));
}

// The words are read sixteen bytes at a time; x86 does not tear an aligned word of eight within.
// What is then done with a word goes by a load of its own (load_word), so a stale bit here costs a
// look at most.
PICKD_INLINE PlaceScan scan_place(WordRef line_a, WordRef line_b, std::uint64_t tag) {
  const auto* a = reinterpret_cast<const __m128i*>(line_a);
  const auto* b = reinterpret_cast<const __m128i*>(line_b);
  const __m128i tags[4] = {four_tags(a), four_tags(a + 2), four_tags(b), four_tags(b + 2)};
  return {equal_lanes(tags, static_cast<std::uint32_t>(tag)), equal_lanes(tags, 0)};
}

PICKD_INLINE HolderScan scan_holders(WordRef line_a, WordRef line_b, std::uint64_t tag,
                                     std::uint32_t endpoint) {
  const PlaceScan found = scan_place(line_a, line_b, tag);
  if (found.tagged == 0) return {0, found.empty, 0, 0};
  const auto* a = reinterpret_cast<const __m128i*>(line_a);
  const auto* b = reinterpret_cast<const __m128i*>(line_b);
  const __m128i endpoints[4] = {four_endpoints(a), four_endpoints(a + 2), four_endpoints(b),
                                four_endpoints(b + 2)};
  return {found.tagged, found.empty, equal_lanes(endpoints, endpoint) & found.tagged,
          equal_lanes(endpoints, abi::kMarkerEndpoint) & found.tagged};
}

// The words of a line that are zero, as lanes of sixteen bits.
PICKD_INLINE __m128i empty_words(WordRef line) {
  const auto* from = reinterpret_cast<const __m128i*>(line);
  // Sixteen bits for each half of a word; a word is zero when both of its are set.
  const auto four = [from](int at) {
    const __m128i zero = _mm_setzero_si128();
    const __m128i halves = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(from + at), zero),
                                           _mm_cmpeq_epi32(_mm_load_si128(from + at + 1), zero));
    return _mm_cmpeq_epi32(halves, _mm_set1_epi32(-1));
  };
  return _mm_packs_epi32(four(0), four(2));
}

// Words of two lines that follow each other that are not zero: word i is bit i.
PICKD_INLINE std::uint32_t occupied_words(WordRef lines) {
  const __m128i empty =
      _mm_packs_epi16(empty_words(lines), empty_words(lines + abi::kWordsPerLine));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(empty)) ^ 0xFFFF;
}

// Words of two lines that follow each other, by their distance from the stamp `oldest`: word i is
// bit i.
PICKD_INLINE AgeScan scan_ages(WordRef lines, std::uint32_t oldest, AgeLimits limits) {
  const __m128i mask = _mm_set1_epi32(static_cast<int>(abi::kStampMask));
  const __m128i from_stamp = _mm_set1_epi32(static_cast<int>(oldest));
  const __m128i forgotten_below = _mm_set1_epi32(static_cast<int>(limits.forgotten));
  const __m128i old_below = _mm_set1_epi32(static_cast<int>(limits.old));
  const __m128i zero = _mm_setzero_si128();
  const __m128i tier = _mm_set1_epi32(3);
  __m128i forgotten[4];
  __m128i old[4];
  for (int four = 0; four < 4; ++four) {
    const auto* from = reinterpret_cast<const __m128i*>(lines) + 2 * four;
    const __m128 first = _mm_castsi128_ps(_mm_load_si128(from));
    const __m128 second = _mm_castsi128_ps(_mm_load_si128(from + 1));
    const __m128i low = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i high = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(3, 1, 3, 1)));
    // Twenty bits each, so a comparison with signs is one without.
    const __m128i distance =
        _mm_and_si128(_mm_sub_epi32(_mm_and_si128(low, mask), from_stamp), mask);
    const __m128i assumed = _mm_cmpeq_epi32(_mm_and_si128(high, tier), zero);
    const __m128i marker = _mm_cmpeq_epi32(_mm_srli_epi32(low, abi::kStampBits), zero);
    forgotten[four] = _mm_andnot_si128(
        marker, _mm_and_si128(assumed, _mm_cmplt_epi32(distance, forgotten_below)));
    old[four] = _mm_cmplt_epi32(distance, old_below);
  }
  const auto bits_of = [](const __m128i* lanes) {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(
        _mm_packs_epi16(_mm_packs_epi32(lanes[0], lanes[1]), _mm_packs_epi32(lanes[2], lanes[3]))));
  };
  return {bits_of(forgotten), bits_of(old)};
}

#else

PICKD_INLINE AgeScan scan_ages(WordRef lines, std::uint32_t oldest, AgeLimits limits) {
  AgeScan scan{0, 0};
  for (std::uint32_t i = 0; i < 2 * abi::kWordsPerLine; ++i) {
    const abi::PrefixWord word{lines[i].load(std::memory_order_relaxed)};
    const std::uint32_t distance = (word.stamp() - oldest) & abi::kStampMask;
    const bool plain =
        word.tier() == abi::Tier::kAssumed && word.endpoint() != abi::kMarkerEndpoint;
    scan.forgotten |= static_cast<std::uint32_t>(plain && distance < limits.forgotten) << i;
    scan.old |= static_cast<std::uint32_t>(distance < limits.old) << i;
  }
  return scan;
}

PICKD_INLINE std::uint32_t occupied_words(WordRef lines) {
  std::uint32_t occupied = 0;
  for (std::uint32_t i = 0; i < 2 * abi::kWordsPerLine; ++i) {
    occupied |= static_cast<std::uint32_t>(lines[i].load(std::memory_order_relaxed) != 0) << i;
  }
  return occupied;
}

PICKD_INLINE PlaceScan scan_place(WordRef line_a, WordRef line_b, std::uint64_t tag) {
  PlaceScan scan{0, 0};
  for (std::uint32_t i = 0; i < kWordsPerPlace; ++i) {
    const WordRef line = i < abi::kWordsPerLine ? line_a : line_b;
    const std::uint64_t found =
        line[i % abi::kWordsPerLine].load(std::memory_order_relaxed) >> kTagShift;
    scan.tagged |= static_cast<std::uint32_t>(found == tag) << i;
    scan.empty |= static_cast<std::uint32_t>(found == 0) << i;
  }
  return scan;
}

PICKD_INLINE HolderScan scan_holders(WordRef line_a, WordRef line_b, std::uint64_t tag,
                                     std::uint32_t endpoint) {
  HolderScan scan{0, 0, 0, 0};
  for (std::uint32_t i = 0; i < kWordsPerPlace; ++i) {
    const WordRef line = i < abi::kWordsPerLine ? line_a : line_b;
    const abi::PrefixWord word{line[i % abi::kWordsPerLine].load(std::memory_order_relaxed)};
    scan.empty |= static_cast<std::uint32_t>(word.tag() == 0) << i;
    if (word.tag() != tag) continue;
    scan.tagged |= 1U << i;
    scan.own |= static_cast<std::uint32_t>(word.endpoint() == endpoint) << i;
    scan.marker |= static_cast<std::uint32_t>(word.endpoint() == abi::kMarkerEndpoint) << i;
  }
  return scan;
}

#endif

// Two words at an even place of a line become empty in one locked operation, if both are still what
// was read: half the price of clearing each. Others may change either of them by operations on
// eight bytes meanwhile; x86 orders locked operations of any size on one line.
#if defined(__x86_64__) && !defined(PICKD_TSAN)
inline bool can_clear_pairs() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
}
PICKD_INLINE bool clear_pair(WordRef pair, abi::PrefixWord first, abi::PrefixWord second) {
  using Sixteen = unsigned char[16];
  bool done = false;
  std::uint64_t low = first.bits;
  std::uint64_t high = second.bits;
  asm volatile("lock cmpxchg16b %[pair]"
               : "=@ccz"(done), [pair] "+m"(*reinterpret_cast<Sixteen*>(pair)), "+a"(low),
                 "+d"(high)
               : "b"(std::uint64_t{0}), "c"(std::uint64_t{0})
               : "memory");
  return done;
}
#else
inline bool can_clear_pairs() { return false; }
PICKD_INLINE bool clear_pair(WordRef, abi::PrefixWord, abi::PrefixWord) { return false; }
#endif

// Relaxed: a word is complete in itself, nothing else is published through it.
PICKD_INLINE abi::PrefixWord load_word(WordRef line_a, WordRef line_b, std::uint32_t at) {
  const WordRef line = at < abi::kWordsPerLine ? line_a : line_b;
  return {line[at % abi::kWordsPerLine].load(std::memory_order_relaxed)};
}

// Of eight bits. Not std::popcount: without a compiler flag for newer machines that is a function
// call.
PICKD_INLINE std::uint32_t count_bits8(std::uint32_t bits) {
  bits -= (bits >> 1) & 0x55;
  bits = (bits & 0x33) + ((bits >> 2) & 0x33);
  return (bits + (bits >> 4)) & 0x0F;
}

PICKD_INLINE std::uint32_t count_bits16(std::uint32_t bits) {
  return count_bits8(bits & 0xFF) + count_bits8(bits >> 8);
}

// Of each byte.
PICKD_INLINE std::uint64_t count_bits_of_bytes(std::uint64_t bits) {
  bits -= (bits >> 1) & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333);
  return (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
}

// Of all.
PICKD_INLINE std::uint32_t count_bits64(std::uint64_t bits) {
  return static_cast<std::uint32_t>((count_bits_of_bytes(bits) * 0x0101010101010101) >> 56);
}

}  // namespace pickd::prefix

// Scans over bytes, 16 at a time where the machine can: where a name or a label's value ends, how
// far two lines are the same. Knows no format beyond that.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "daemon/scrape/number.hpp"

namespace pickd::scrape {

// The first byte in [at, end) that is no letter, digit, _ or :, else `end`.
inline const char* skip_name(const char* at, const char* end) {
#if defined(__SSE2__)
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto in_range = [](__m128i value, char low, char span) {
      const __m128i shifted = _mm_sub_epi8(value, _mm_set1_epi8(low));
      return _mm_cmpeq_epi8(_mm_min_epu8(shifted, _mm_set1_epi8(span)), shifted);
    };
    const __m128i letters = in_range(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 25);
    const __m128i digits = in_range(bytes, '0', 10);  // and the colon, which follows the 9
    const __m128i underscores = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_'));
    const int of_name = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letters, digits), underscores));
    if (of_name != 0xFFFF) return at + std::countr_one(static_cast<unsigned>(of_name));
    at += 16;
  }
#endif
  while (at != end && is_name_byte(*at)) ++at;
  return at;
}

// The first newline, or quote that no backslash escapes, in [at, end), else `end`. `*escaped`: the
// first byte is escaped by what came before; afterwards, whether the byte at `end` is.
inline const char* skip_value(const char* at, const char* end, bool* escaped) {
#if defined(__SSE2__)
  std::uint32_t carry = *escaped ? 1 : 0;
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto mask = [bytes](char letter) {
      return static_cast<std::uint32_t>(
          _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(letter))));
    };
    const std::uint32_t quotes = mask('"');
    const std::uint32_t newlines = mask('\n');
    std::uint32_t backslashes = mask('\\') & ~carry;  // an escaped one escapes nothing
    std::uint32_t hidden = carry;
    carry = 0;
    if (backslashes != 0) {
      // In a run of backslashes each second one is escaped itself, so what follows the run is
      // escaped when the run's length is odd. The additions carry through the runs that start at
      // even places, or at odd ones, and leave the others.
      const std::uint32_t even = 0x55555555;
      const std::uint32_t starts = backslashes & ~(backslashes << 1);
      const std::uint32_t from_even = (backslashes + (starts & even)) & ~backslashes;
      const std::uint32_t from_odd = (backslashes + (starts & ~even)) & ~backslashes;
      // Both are the bytes behind the runs: hidden where a run's length is odd.
      hidden |= (from_even & ~even) | (from_odd & even);
      carry = hidden >> 16 & 1;
    }
    const std::uint32_t found = newlines | (quotes & ~hidden);
    if (found != 0) {
      *escaped = false;
      return at + std::countr_zero(found);
    }
    at += 16;
  }
  *escaped = carry != 0;
#endif
  for (; at != end; ++at) {
    if (*at == '\n') break;
    if (*escaped) {
      *escaped = false;
    } else if (*at == '\\') {
      *escaped = true;
    } else if (*at == '"') {
      break;
    }
  }
  return at;
}

// The first quote, backslash or newline in [at, end), else `end`.
inline const char* skip_unescaped(const char* at, const char* end) {
#if defined(__SSE2__)
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const int found =
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))));
    if (found != 0) return at + std::countr_zero(static_cast<unsigned>(found));
    at += 16;
  }
#endif
  while (at != end && *at != '"' && *at != '\\' && *at != '\n') ++at;
  return at;
}

// How many bytes two ranges have in common at their beginning; no more than `bytes`.
inline std::size_t common_bytes(const char* a, const char* b, std::size_t bytes) {
  std::size_t at = 0;
#if defined(__SSE2__)
  for (; bytes - at >= 16; at += 16) {
    const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at));
    const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at));
    const int same = _mm_movemask_epi8(_mm_cmpeq_epi8(left, right));
    if (same != 0xFFFF) return at + std::countr_one(static_cast<unsigned>(same));
  }
#endif
  while (at != bytes && a[at] == b[at]) ++at;
  return at;
}

}  // namespace pickd::scrape

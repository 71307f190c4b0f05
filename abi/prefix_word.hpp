// The prefix table's word, its liveness rule and the places of a key: what a reader in any process
// needs, and nothing that writes.
//
//    63            34 33  32 31       20 19              0
//    [   tag : 30   ][tier:2][endpoint:12][   stamp : 20   ]     word 0 = empty
//
// A key has two lines of eight words, A and B; both are always looked at. Endpoint id 0 marks a hot
// block: further holders stand under the group key of (key, endpoint / 8). A word lives as long as
// its stamp is not older than the horizon of its endpoint (see EndpointRecord::life in
// state_layout.hpp).
#pragma once

#include <cstdint>

#include "abi/limits.hpp"

namespace pickd::abi {

inline constexpr std::uint32_t kStampBits = 20;
inline constexpr std::uint32_t kStampMask = (1U << kStampBits) - 1;
inline constexpr std::uint32_t kWordsPerLine = 8;
inline constexpr std::uint64_t kTickNs = 50'000'000;  // 50 ms
// a reader's clock may be this far behind
inline constexpr std::uint32_t kClockSlackTicks = 64;
// less than this after now = ahead, not ancient
inline constexpr std::uint32_t kAheadTicks = 1U << 17;
inline constexpr std::uint32_t kMarkerEndpoint = 0;

enum class Tier : std::uint8_t { kAssumed = 0, kGpu = 1, kHost = 2, kRemote = 3 };

struct PrefixWord {
  std::uint64_t bits = 0;

  static constexpr PrefixWord make(std::uint32_t tag, Tier tier, std::uint32_t endpoint,
                                   std::uint32_t stamp) {
    return {(static_cast<std::uint64_t>(tag) << 34) | (static_cast<std::uint64_t>(tier) << 32) |
            (static_cast<std::uint64_t>(endpoint) << kStampBits) | (stamp & kStampMask)};
  }
  constexpr bool empty() const { return bits == 0; }
  constexpr std::uint32_t tag() const { return static_cast<std::uint32_t>(bits >> 34); }
  constexpr Tier tier() const { return static_cast<Tier>((bits >> 32) & 3); }
  constexpr std::uint32_t endpoint() const {
    return static_cast<std::uint32_t>(bits >> kStampBits) & (kEndpointIdsMax - 1);
  }
  constexpr std::uint32_t stamp() const { return static_cast<std::uint32_t>(bits) & kStampMask; }
};
static_assert(sizeof(PrefixWord) == 8);

// How far after `horizon` a live stamp may lie. A reader that was stopped between reading the clock
// and the horizon sees the horizon ahead of its clock: it must not take every stamp of the past as
// live.
constexpr std::uint32_t live_span(std::uint32_t horizon, std::uint32_t now) {
  const std::uint32_t span = (now + kClockSlackTicks - horizon) & kStampMask;
  return span > kStampMask - kAheadTicks ? kClockSlackTicks : span;
}

// A stamp lives while it is at or after `horizon`; `now` may be a little behind the newest stamp.
constexpr bool stamp_is_live(std::uint32_t stamp, std::uint32_t horizon, std::uint32_t now) {
  return ((stamp - horizon) & kStampMask) <= live_span(horizon, now);
}

// Age in ticks of a stamp: 0 for one that is ahead of this reader's clock.
constexpr std::uint32_t stamp_age(std::uint32_t stamp, std::uint32_t now) {
  const std::uint32_t age = (now - stamp) & kStampMask;
  return age > kStampMask - kAheadTicks ? 0 : age;
}

// The newer of two stamps, as seen at `now`.
constexpr std::uint32_t newer_stamp(std::uint32_t a, std::uint32_t b, std::uint32_t now) {
  const std::uint32_t oldest = now + kAheadTicks + 1;
  return ((a - oldest) & kStampMask) >= ((b - oldest) & kStampMask) ? a & kStampMask
                                                                    : b & kStampMask;
}

// Was the stamp forgotten when the horizon rose? What a writer asks before it takes a word's place:
// unlike stamp_is_live() it spares stamps that are far ahead of a `now` that was read long ago.
constexpr bool stamp_is_forgotten(std::uint32_t stamp, std::uint32_t horizon, std::uint32_t now) {
  const std::uint32_t oldest = now + kAheadTicks + 1;
  return ((stamp - oldest) & kStampMask) < ((horizon - oldest) & kStampMask);
}

// Tag and lines of a key. `lines` is even and at most 2^32.
struct KeyPlace {
  std::uint64_t line_a;
  std::uint64_t line_b;
  std::uint32_t tag;  // never 0, so that no word of any kind is the empty word
};

constexpr KeyPlace place_of(std::uint64_t key, std::uint64_t lines) {
  const std::uint64_t second = (key ^ (key >> 29)) * 0x9E3779B97F4A7C15ULL;
  const auto scale = [lines](std::uint64_t hash) { return ((hash >> 32) * lines) >> 32; };
  KeyPlace place{scale(key), scale(second), 0};
  if (place.line_b == place.line_a) place.line_b ^= 1;
  const auto tag = static_cast<std::uint32_t>(key & ((1U << 30) - 1));
  place.tag = tag == 0 ? 1 : tag;
  return place;
}

// The key under which a group of endpoints holds a hot block.
constexpr std::uint64_t group_key(std::uint64_t key, std::uint32_t endpoint) {
  const std::uint64_t group = 1 + endpoint / kEndpointGroupSize;
  std::uint64_t mixed = key ^ (group * 0xD6E8FEB86659FD93ULL);
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
  mixed = (mixed ^ (mixed >> 32)) * 0x9E3779B97F4A7C15ULL;
  return mixed ^ (mixed >> 29);
}

}  // namespace pickd::abi

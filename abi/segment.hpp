// The first 64 bytes of every shared segment, whatever it holds.
//
// A reader checks `version` first (load acquire): zero means "still being filled". The writer
// stores it last with release, so that whoever sees it sees the rest. Everything is little-endian.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace pickd::abi {

inline constexpr std::uint64_t kStateMagic = 0x31305441'54534b50ULL;    // "PKSTAT01"
inline constexpr std::uint64_t kChannelMagic = 0x31304e41'48434b50ULL;  // "PKCHAN01"
inline constexpr std::uint16_t kLayoutMajor = 1;
inline constexpr std::uint16_t kLayoutMinor = 1;
inline constexpr std::uint32_t kByteOrderMark = 0x01020304;

// Feature bits a reader must understand to read a segment at all; an unknown bit means "refuse".
// hot-block markers and group words are in use
inline constexpr std::uint32_t kFeatureHotGroups = 1U << 0;
inline constexpr std::uint32_t kFeaturesKnown = kFeatureHotGroups;

struct SegmentHeader {
  std::uint64_t magic;
  std::uint16_t layout_major;
  std::uint16_t layout_minor;
  std::uint32_t header_bytes;
  std::uint64_t total_bytes;
  std::uint32_t byte_order_mark;
  std::uint32_t features;
  std::uint8_t boot_id[16];
  std::uint64_t daemon_epoch;
  std::atomic<std::uint64_t> version;  // (major << 16 | minor) + 1; stored last with release
};
static_assert(sizeof(SegmentHeader) == 64 && std::is_standard_layout_v<SegmentHeader>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::uint64_t segment_version(std::uint16_t major, std::uint16_t minor) {
  return ((static_cast<std::uint64_t>(major) << 16) | minor) + 1;
}

}  // namespace pickd::abi

// What a recording of picks consists of, as the daemon sends it: entries of 64-bit words.
//
// No text of a prompt, no name of a user: chain keys of the prompt's blocks, which a secret of the
// state file makes, its lengths, and how it ended.
#pragma once

#include <cstdint>

namespace pickd::abi {

enum class RecordingKind : std::uint32_t { kPick = 1, kEnd = 2 };

struct RecordingHead {
  std::uint32_t words;  // of the entry, this included
  RecordingKind kind;
  std::uint64_t now_ns;  // of the daemon's clock
  std::uint64_t ticket_client;
  std::uint64_t ticket_sequence;
};
static_assert(sizeof(RecordingHead) == 32);

// Behind it stand `keys` words: of each kRecordingStrideTokens the key of the last whole block in
// it, and, where more whole blocks follow, the key of the last of all; at most kRecordingKeysMax.
struct RecordingPick {
  RecordingHead head;
  std::uint32_t prompt_tokens;
  std::uint32_t expected_output_tokens;  // 0: not told
  std::uint32_t match_tokens;            // of the picked endpoint
  std::uint32_t keys;
};
static_assert(sizeof(RecordingPick) == 48);

struct RecordingEnd {
  RecordingHead head;
  std::uint32_t output_tokens;  // kUnknown32: not told
  std::uint32_t done;           // 1: it was served; 0: it failed or was cancelled
};
static_assert(sizeof(RecordingEnd) == 40);

// As traces have it (tools/bench/trace.hpp).
inline constexpr std::uint32_t kRecordingStrideTokens = 512;
// Of one entry: an answer holds the longest. What is behind them is left out.
inline constexpr std::uint32_t kRecordingKeysMax = 4096;

}  // namespace pickd::abi

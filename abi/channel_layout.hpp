// A channel segment: one sealed memfd for one client queue, two single-producer single-consumer
// rings.
//
//   0        ChannelHeader (one page)
//   indices  RingIndices, at `indices_offset` (coloured, so that many channels do not share cache
//   sets)
//   submissions  byte ring, client -> daemon
//   completions  byte ring, daemon -> client
//
// A record starts on a unit of 128 bytes, its first word is its length in bytes (rounded up to
// units by the reader); a record never wraps: kRecordPadding fills the end of the ring. Indices
// count bytes, are 64 bits wide and never wrap. Each side keeps its own index privately and
// publishes it; the peer's is loaded once per look. The daemon believes nothing here: see
// daemon/workers/submission.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/limits.hpp"
#include "abi/segment.hpp"

namespace pickd::abi {

struct ChannelHeader {
  SegmentHeader segment;
  std::uint32_t channel_id;
  std::uint32_t worker;  // which WorkerWord of the state segment tells whether to ring
  std::uint64_t indices_offset;
  std::uint64_t submissions_offset;
  std::uint64_t submissions_bytes;  // power of two
  std::uint64_t completions_offset;
  std::uint64_t completions_bytes;  // power of two
  std::uint32_t keys_max;
  std::uint32_t reserved;
};

struct RingIndices {
  alignas(kLinePairBytes) std::atomic<std::uint64_t> submissions_tail;  // client publishes
  alignas(kLinePairBytes) std::atomic<std::uint64_t> submissions_head;  // daemon publishes
  alignas(kLinePairBytes) std::atomic<std::uint64_t> completions_tail;  // daemon publishes
  alignas(kLinePairBytes) std::atomic<std::uint64_t> completions_head;  // client publishes
  // 1: the client sleeps, write its pipe after publishing. Set by the client, cleared by the
  // client.
  std::atomic<std::uint32_t> completions_waiting;
};
static_assert(sizeof(RingIndices) == 4 * kLinePairBytes);

enum class RecordType : std::uint8_t {
  kPadding = 0,
  kPick = 1,    // submission: PickRecord; completion: PickedRecord
  kReport = 2,  // submission: ReportRecord; completion (if asked for): ReportedRecord
  // submission: CancelRecord: drop the pick with this sequence, or free what it reserved
  kCancel = 3,
};

struct RecordHead {
  std::uint32_t bytes;  // of the whole record, this head included
  RecordType type;
  std::uint8_t flags;
  std::uint16_t reserved;
  std::uint64_t sequence;  // of the ticket; of the report for kReport
};
static_assert(sizeof(RecordHead) == 16);

// ---- Pick: submission ---------------------------------------------------------------------------

inline constexpr std::uint8_t kPickStream = 1U << 0;
inline constexpr std::uint8_t kPickCut = 1U << 1;     // the prompt had more keys than fit
inline constexpr std::uint8_t kPickSubset = 1U << 2;  // a subset hint is present, maybe empty
inline constexpr std::uint8_t kPickDryRun = 1U << 3;  // no reservation, no stamps
inline constexpr std::uint8_t kPickExtras = 1U
                                            << 4;  // the prompt holds more than text: images, ...

inline constexpr std::int16_t kPriorityDefault = 0;

// The strings of a pick follow its keys, each framed by a FieldHead, in any order, each kind at
// most once but for kSubsetEndpoint and kAttribute.
enum class FieldKind : std::uint8_t {
  kModel = 1,
  kAdapter = 2,
  kSession = 3,
  kFairness = 4,
  kRequestId = 5,
  kSubsetEndpoint = 6,  // name or address of an endpoint the pick may go to
  kAttribute = 7,       // key, NUL, value
};

struct FieldHead {
  FieldKind kind;
  std::uint8_t reserved;
  std::uint16_t bytes;  // of the content, which follows at once, unaligned, without terminator
};
static_assert(sizeof(FieldHead) == 4);

struct PickRecord {
  RecordHead head;
  std::uint32_t key_count;
  std::uint32_t field_bytes;    // of all fields behind the keys
  std::uint32_t prompt_tokens;  // of the whole prompt, more than the keys cover if it was cut
  std::uint32_t expected_output_tokens;  // 0 = unknown
  float slo_ttft_ms;                     // 0 = none
  float slo_itl_ms;                      // 0 = none
  std::int16_t priority;
  std::uint8_t key_algorithm;  // id of a KeyAlgorithm of the state header
  std::uint8_t endpoints_max;  // 1..kResultEndpointsMax
  // The completion lists only as many endpoints as fit in so many bytes, but the winner always; 0:
  // no limit. A client that reserves room in its ring for each answer can so reserve less.
  std::uint32_t answer_bytes_max;
  // std::uint64_t keys[key_count]; then fields
};
static_assert(sizeof(PickRecord) == 48);

// ---- Pick: completion ---------------------------------------------------------------------------

inline constexpr std::uint8_t kPickedTruncated = 1U << 0;  // the prompt was cut at the key limit
inline constexpr std::uint8_t kPickedEncode = 1U << 1;     // what encodes stands at the end

// Why the winner won; the public names are in pickd.h.
enum class Reason : std::uint8_t {
  kNone = 0,
  kScore = 1,        // highest score, alone
  kTie = 2,          // drawn among equals
  kPrefix = 3,       // highest score, and the longest match among the candidates
  kSession = 4,      // the session's endpoint
  kOnly = 5,         // the only candidate
  kPolicy = 6,       // a policy without scores (round-robin)
  kFallback = 7,     // suspect or down endpoints only: the least bad
  kDegraded = 8,     // picked by the library while the daemon is away
  kUnpredicted = 9,  // by load and prefix, where the profile goes by predictions and none is ready
};

struct PickedEndpoint {
  std::uint64_t handle;
  std::uint32_t match_tokens;
  float score;
  std::uint8_t role;
  std::uint8_t name_bytes;
  std::uint8_t address_bytes;
  std::uint8_t reserved;
  std::uint32_t reserved2;
  // text of all endpoints follows the last PickedEndpoint: name, address, name, address, ...
};
static_assert(sizeof(PickedEndpoint) == 24);

struct PickedRecord {
  RecordHead head;
  std::int32_t status;  // 0 or a negative errno
  Reason reason;
  std::uint8_t endpoint_count;
  std::uint16_t text_bytes;
  std::uint32_t prompt_tokens;
  float predicted_ttft_ms;  // NaN = unknown
  float predicted_itl_ms;   // NaN = unknown
  // Of a PickedEndpoint with its name and address, behind all the rest: who runs the prompt before
  // the endpoints decode. 0: they do it themselves.
  std::uint32_t prefill_bytes;
  // PickedEndpoint endpoints[endpoint_count]; text; prefill_bytes; with kPickedEncode the rest of
  // the record is a PickedEndpoint with its name and address: who encodes what is no text
};
static_assert(sizeof(PickedRecord) == 40);

// ---- Report -------------------------------------------------------------------------------------

inline constexpr std::uint8_t kReportAnswer = 1U << 0;  // the client waits for a ReportedRecord

enum class ReportKind : std::uint8_t {
  kFirstToken = 1,
  kProgress = 2,
  kDone = 3,
  kFailed = 4,
  kFallback = 5,  // served by another endpoint of the result than the first
  kCancelled = 6,
};

struct ReportRecord {
  RecordHead head;  // sequence: of this report, for its answer
  std::uint64_t ticket_client;
  std::uint64_t ticket_sequence;
  ReportKind kind;
  // kFallback: name or address of the endpoint follows the record
  std::uint8_t fallback_name_bytes;
  std::uint16_t reserved;
  std::uint32_t prompt_tokens;  // kUnknown32 = not told
  std::uint32_t cached_tokens;
  std::uint32_t output_tokens;
};
static_assert(sizeof(ReportRecord) == 48);

struct ReportedRecord {
  RecordHead head;
  std::int32_t status;
  std::uint32_t reserved;
};
static_assert(sizeof(ReportedRecord) == 24);

struct CancelRecord {
  RecordHead head;  // sequence: of the pick
};

constexpr std::uint64_t ring_units_bytes(std::uint64_t record_bytes) {
  return (record_bytes + kRingUnitBytes - 1) & ~static_cast<std::uint64_t>(kRingUnitBytes - 1);
}

}  // namespace pickd::abi

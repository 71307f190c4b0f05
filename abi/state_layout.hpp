// The state segment: one file on tmpfs, written by the daemon alone, mapped read-only by clients.
//
//   0          StateHeader (4 KiB)
//   workers    WorkerWord[kWorkersMax]          is worker w asleep? one line pair each
//   counters   u64[kThreadsCountedMax][kCountersMax]
//   endpoints  EndpointRecord[endpoint_ids]     indexed by endpoint id; record 0 is never used
//   reservations Reservation[reservation_slots] an open-addressed table keyed by ticket
//   routing    two buffers, versioned           pools, models and adapters for picks without a
//   daemon
//   models       see model_layout.hpp           what is learned of latencies
//   prefix     u64[prefix_lines][8]             the prefix table
//
// Offsets and sizes stand in the header; a reader takes them from there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/key.hpp"
#include "abi/limits.hpp"
#include "abi/prefix_word.hpp"
#include "abi/segment.hpp"

namespace pickd::abi {

using Word = std::atomic<std::uint64_t>;
using HalfWord = std::atomic<std::uint32_t>;

enum class ClockMode : std::uint32_t {
  kBoot = 0,     // tick = (CLOCK_BOOTTIME - tick_base_ns) / kTickNs: a reader computes it alone
  kVirtual = 1,  // tick = virtual_tick: simulations and replays
};

struct StateHeader {
  SegmentHeader segment;

  // Fixed when the file is made.
  std::uint32_t block_tokens;
  std::uint32_t clock_mode;  // ClockMode
  std::uint64_t tick_base_ns;
  std::uint64_t tick_ns;
  std::uint64_t instance_id;  // a digest of what is fixed, the random secret among it
  KeyAlgorithm key_algorithms[kKeyAlgorithmsMax];
  std::uint8_t hash_secret[kHashSecretBytes];
  std::uint32_t hot_holders;        // live holders in the home lines from which a block is hot
  std::uint32_t endpoint_ids;       // records in the endpoint table, id 0 included
  std::uint32_t reservation_slots;  // a power of two
  std::uint32_t workers;
  std::uint64_t workers_offset;
  std::uint64_t counters_offset;
  std::uint64_t endpoints_offset;
  std::uint64_t reservations_offset;
  std::uint64_t routing_offset;
  std::uint64_t routing_bytes;  // of each of the two buffers
  std::uint64_t prefix_offset;
  std::uint64_t prefix_lines;  // even
  std::uint64_t ttl_ticks;     // of assumed words
  std::uint32_t blocks_min;    // a match of fewer blocks counts as none
  std::uint32_t blocks_max;    // blocks beyond this are not looked at
  std::uint32_t keys_max;      // the longest chain a submission may carry
  std::uint32_t daemon_pid;

  // Change while the daemon runs; each on a line pair of its own.
  alignas(kLinePairBytes) Word heartbeat_ns;    // CLOCK_BOOTTIME of the daemon's last sign of life
  Word virtual_tick;                            // used when clock_mode is kVirtual
  Word superseded;                              // not 0: another file took this one's place
  alignas(kLinePairBytes) Word global_horizon;  // tick of the global cut-off, full width
  Word routing_version;                         // even: buffer (version / 2) & 1 holds the newest
  Word endpoint_high_water;                     // ids at or above this were never used

  // Fixed when the file is made: what is learned of latencies, for the next daemon alone.
  std::uint64_t models_offset;
  std::uint32_t model_classes;
  std::uint32_t model_words;
};
static_assert(std::is_standard_layout_v<StateHeader> && sizeof(StateHeader) <= kPageBytes);

struct alignas(kLinePairBytes) WorkerWord {
  // 1: ring the bell after publishing. Partner: announce_then_check() in abi/fence.hpp
  HalfWord asleep;
};

// ---- Endpoints ----------------------------------------------------------------------------------

enum class EndpointState : std::uint32_t {
  kFree = 0,
  kReady = 1,
  kSuspect = 2,
  kDown = 3,
  kDraining = 4,
  kStarting = 5,  // known, not yet seen ready
};

enum class Role : std::uint32_t { kBoth = 0, kDecode = 1, kPrefill = 2, kEncode = 3 };

inline constexpr std::uint32_t kGenerationBits = 24;
inline constexpr std::uint32_t kGenerationMask = (1U << kGenerationBits) - 1;
inline constexpr std::uint32_t kUnknown32 = 0xFFFFFFFFU;  // a scraped value nobody reported

// The word that decides which of an endpoint's prefix words live: one store resets an endpoint.
//
//    63                 40 39          20 19              0
//    [   generation : 24  ][ floor : 20  ][  horizon : 20  ]
//
// `floor`: the tick of the last reset plus one; what is stamped for an older generation lies below
// it. `horizon`: the newest of floor, now - TTL, the capacity cut-off and the global cut-off.
struct LifeWord {
  std::uint64_t bits = 0;

  static constexpr LifeWord make(std::uint32_t generation, std::uint32_t floor,
                                 std::uint32_t horizon) {
    return {(static_cast<std::uint64_t>(generation & kGenerationMask) << 40) |
            (static_cast<std::uint64_t>(floor & kStampMask) << kStampBits) |
            (horizon & kStampMask)};
  }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits >> 40); }
  constexpr std::uint32_t floor() const {
    return static_cast<std::uint32_t>(bits >> kStampBits) & kStampMask;
  }
  constexpr std::uint32_t horizon() const { return static_cast<std::uint32_t>(bits) & kStampMask; }
};

// The floor of the generation that follows `old` when it is reset at `tick`: above that tick, and
// above the floor before it, for a generation of that very tick was stamped with its floor. A
// resetter stores confirmed_life before life, and afterwards looks at the clock again: if the tick
// moved before the store, a pick of the old generation may have read the new tick, and the floor
// has to be raised above it.
constexpr std::uint32_t floor_after(LifeWord old, std::uint64_t tick) {
  const auto now = static_cast<std::uint32_t>(tick) & kStampMask;
  return old.bits == 0 ? (now + 1) & kStampMask : newer_stamp(now + 1, old.floor() + 1, now);
}

// A count that belongs to one generation of an endpoint: [ generation : 24 ][ count : 40 ].
struct CountWord {
  std::uint64_t bits = 0;

  static constexpr std::uint64_t kCountMask = (1ULL << 40) - 1;
  static constexpr CountWord make(std::uint32_t generation, std::uint64_t count) {
    return {(static_cast<std::uint64_t>(generation & kGenerationMask) << 40) |
            (count & kCountMask)};
  }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits >> 40); }
  constexpr std::uint64_t count() const { return bits & kCountMask; }
};

// Requests that an endpoint failed, of one generation: since one ended well, and all.
//
//    63                 40 39          24 23           0
//    [   generation : 24  ][ in a row:16 ][  all : 24   ]
struct FailureWord {
  std::uint64_t bits = 0;

  static constexpr std::uint32_t kInARowMax = 0xFFFF;
  static constexpr std::uint32_t kAllMask = 0xFFFFFF;  // wraps: only whether it changed counts
  static constexpr FailureWord make(std::uint32_t generation, std::uint32_t in_a_row,
                                    std::uint32_t all) {
    return {(static_cast<std::uint64_t>(generation & kGenerationMask) << 40) |
            (static_cast<std::uint64_t>(in_a_row) << 24) | (all & kAllMask)};
  }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits >> 40); }
  constexpr std::uint32_t in_a_row() const {
    return static_cast<std::uint32_t>(bits >> 24) & kInARowMax;
  }
  constexpr std::uint32_t all() const { return static_cast<std::uint32_t>(bits) & kAllMask; }
};

// Load of one model of an endpoint that serves several:
//
//    63                     32 31       16 15        0
//    [ hash of its name : 32  ][waiting:16][running:16]     0: no entry; 0xFFFF: unknown
//
// The hash is that of an adapter's name.
struct ModelLoadWord {
  std::uint64_t bits = 0;

  static constexpr std::uint32_t kUnknown = 0xFFFF;
  static constexpr ModelLoadWord make(std::uint32_t hash, std::uint32_t waiting,
                                      std::uint32_t running) {
    return {(static_cast<std::uint64_t>(hash) << 32) | (waiting << 16) | running};
  }
  constexpr std::uint32_t hash() const { return static_cast<std::uint32_t>(bits >> 32); }
  constexpr std::uint32_t waiting() const { return static_cast<std::uint32_t>(bits) >> 16; }
  constexpr std::uint32_t running() const { return static_cast<std::uint32_t>(bits) & 0xFFFF; }
};
inline constexpr std::size_t kModelLoadsMax = 8;

struct alignas(kLinePairBytes) EndpointRecord {
  // Line 0: what every pick reads.
  Word life;               // LifeWord, for assumed words
  Word confirmed_life;     // LifeWord, for words confirmed by the engine's events (no TTL)
  HalfWord state;          // EndpointState
  HalfWord role;           // Role
  Word inflight_requests;  // CountWord: reservations held
  // CountWord: uncached prompt tokens of reservations without a first token, at who prefills them
  Word inflight_tokens;
  HalfWord waiting;      // requests queued in the engine, as scraped; kUnknown32
  HalfWord running;      // requests running in the engine, as scraped; kUnknown32
  HalfWord kv_use_ppm;   // KV cache in use, parts per million; kUnknown32
  HalfWord scrape_tick;  // low 32 bits of the tick of the newest of these values

  // Line 1: capacity and adapters.
  Word capacity_blocks;  // blocks the engine holds; 0 = no limit known
  Word live_blocks;      // estimate of live words of this endpoint, by the last sweep
  HalfWord adapters_max;
  HalfWord text_version;      // sequence lock of `name` and `address`: odd while being written
  HalfWord foreign_requests;  // requests there that are not ours, by the scrape; kUnknown32
  HalfWord told_ticks_max;    // age from which what was scraped is unknown; 0: never
  Word failures;              // FailureWord
  Word engine_start_ms;       // when the engine's process began, Unix time; 0: not told
  Word inflight_prompts;      // CountWord: prompt tokens of the reservations held, cached ones too

  // Lines 2 to 4: adapters by 32-bit hash, 0 = no entry.
  HalfWord adapters_active[kEndpointAdaptersMax];
  HalfWord adapters_waiting[kEndpointAdaptersMax];
  HalfWord adapters_recent[kEndpointAdaptersMax];  // own picks: still loaded when no longer listed

  // Text, written once per generation under `text_version`; words so that a race is defined.
  Word name[16];     // zero-terminated
  Word address[16];  // zero-terminated

  Word model_load[kModelLoadsMax];  // ModelLoadWord, when the engine tells of several models
};
static_assert(sizeof(EndpointRecord) == 640 && std::is_standard_layout_v<EndpointRecord>);
static_assert(sizeof(EndpointRecord::name) == kEndpointNameBytesMax + 1);

// ---- Reservations -------------------------------------------------------------------------------

enum class ReservationState : std::uint32_t { kFree = 0, kWriting = 1, kHeld = 2 };

inline constexpr std::uint32_t kReservationFirstToken = 1U << 0;  // its tokens were given back
inline constexpr std::uint32_t kReservationStream = 1U << 1;
inline constexpr std::uint32_t kReservationAnswered = 1U << 2;  // its completion was published

// An endpoint of one generation: [ reserved : 28 ][ generation : 24 ][ endpoint : 12 ]; 0 = none.
inline constexpr std::uint32_t kHandleBits = 36;
inline constexpr std::uint64_t kHandleMask = (1ULL << kHandleBits) - 1;
constexpr std::uint64_t endpoint_handle(std::uint32_t endpoint, std::uint32_t generation) {
  return (static_cast<std::uint64_t>(generation & kGenerationMask) << 12) | endpoint;
}
constexpr std::uint32_t handle_endpoint(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle) & (kEndpointIdsMax - 1);
}
constexpr std::uint32_t handle_generation(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle >> 12) & kGenerationMask;
}

// Of a reservation's prefill_endpoint: who encodes, above the handle of who prefills.
//
//    63                    48 47          36 35                       0
//    [ low generation : 16   ][ endpoint : 12 ][ handle of who prefills ]     0: none
constexpr std::uint64_t with_encode(std::uint64_t prefill_handle, std::uint64_t encode_handle) {
  return (prefill_handle & kHandleMask) | (encode_handle << kHandleBits);
}
constexpr std::uint64_t prefill_handle_of(std::uint64_t word) { return word & kHandleMask; }
constexpr std::uint32_t encode_endpoint_of(std::uint64_t word) {
  return handle_endpoint(word >> kHandleBits);
}
// Whether `generation` is the one that was picked: of older ones 65,535 in a row are told apart.
constexpr bool is_encode_generation(std::uint64_t word, std::uint32_t generation) {
  return ((word >> (kHandleBits + 12)) & 0xFFFF) == (generation & 0xFFFF);
}

// One picked request until it ends. In-flight counts are sums over these records.
struct alignas(kCacheLineBytes) Reservation {
  Word state;     // [ ReservationState : 2 ][ flags : 6 ][ tag of the ticket : 56 ], written last
  Word client;    // ticket, first half
  Word sequence;  // ticket, second half
  Word endpoint;  // handle
  Word prefill_endpoint;  // handle, 0 = none; see with_encode()
  Word tokens;            // [ uncached : 32 ][ prompt : 32 ]
  Word owner;             // [ uid : 32 ][ expected output tokens : 32 ]
  Word picked_tick;       // full width
};
static_assert(sizeof(Reservation) == 64);

inline constexpr std::uint32_t kReservationProbes = 64;  // slots looked at before "table full"

}  // namespace pickd::abi

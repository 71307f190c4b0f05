// What is learned of latencies, kept in the state segment over a restart of the daemon. The daemon
// alone reads and writes it; to everybody else these are bytes.
//
//   models_offset   ModelRecord[model_classes][2]   a class's newest and the one before
//                   Word[endpoint_ids]              an EndpointModelWord each
#pragma once

#include <cstdint>
#include <type_traits>

#include "abi/limits.hpp"
#include "abi/state_layout.hpp"

namespace pickd::abi {

inline constexpr std::uint32_t kModelWords = 156;
// Raised whenever the meaning of a word changes: older records then do not fit their check.
inline constexpr std::uint64_t kModelVersion = 1;

// Each word is the bits of a double. A record that was being written when the daemon died has a
// check that does not fit; the other one of its class is taken then.
struct ModelRecord {
  Word sequence;   // 0: never written; of the two of a class the higher is the newer. Written last.
  Word check;      // XXH3-64 with seed kModelVersion of class_key and the words
  Word class_key;  // XXH3-64 of the name of the class
  Word reserved;
  Word words[kModelWords];
};
static_assert(sizeof(ModelRecord) == 1280 && std::is_standard_layout_v<ModelRecord>);

// How slow an endpoint of one generation is against its class:
//
//    63                 40 39         26 25         10 9         0
//    [   generation : 24  ][  log : 14   ][ evidence:16][ share:10 ]     0: nothing is known
//
// log: logarithm of the slowness, two's complement, in 1/2048. evidence: seconds of predicted time
// it was learned from, in 1/16. share: of the time somebody waited there, in 1/1023.
struct EndpointModelWord {
  std::uint64_t bits = 0;

  static constexpr double kLogScale = 2048;
  static constexpr double kEvidenceScale = 16;
  static constexpr double kShareScale = 1023;

  static constexpr EndpointModelWord make(std::uint32_t generation, std::int32_t log,
                                          std::uint32_t evidence, std::uint32_t share) {
    return {(static_cast<std::uint64_t>(generation & kGenerationMask) << 40) |
            (static_cast<std::uint64_t>(static_cast<std::uint32_t>(log) & 0x3FFF) << 26) |
            (static_cast<std::uint64_t>(evidence & 0xFFFF) << 10) | (share & 0x3FF)};
  }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits >> 40); }
  constexpr std::int32_t log() const {
    const auto raw = static_cast<std::int32_t>((bits >> 26) & 0x3FFF);
    return raw >= 0x2000 ? raw - 0x4000 : raw;
  }
  constexpr std::uint32_t evidence() const {
    return static_cast<std::uint32_t>(bits >> 10) & 0xFFFF;
  }
  constexpr std::uint32_t share() const { return static_cast<std::uint32_t>(bits) & 0x3FF; }
};

inline constexpr std::uint32_t kModelClasses = 64;
inline constexpr std::uint64_t kModelRecordsBytes = 2ULL * kModelClasses * sizeof(ModelRecord);
constexpr std::uint64_t models_bytes(std::uint32_t endpoint_ids) {
  return kModelRecordsBytes + sizeof(Word) * endpoint_ids;
}

}  // namespace pickd::abi

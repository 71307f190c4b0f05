// From the copy of a submission to a request: every length, count and number checked.
//
// The bytes are private memory here (Channel::take copied them). What does not fit the layout is
// refused as a whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "abi/channel_layout.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::workers {

// Arrays that a decoded request points into. One a worker, reused.
struct DecodeScratch {
  std::array<std::string_view, abi::kSubsetMax> subset;
  std::array<pick::Attribute, abi::kAttributesMax> attributes;
};

struct DecodedPick {
  pick::PickRequest request;
  bool cut = false;
  std::uint32_t slo_ignored = 0;       // SLO values that were no time of a request
  std::uint32_t ttl_ignored = 0;       // affinity TTLs that were no time
  std::uint32_t answer_bytes_max = 0;  // as told; 0: no limit
};

struct PickLimits {
  std::uint32_t keys_max;
  std::uint8_t key_algorithms[abi::kKeyAlgorithmsMax];  // ids accepted, 0 = none
};

// Decodes a kPick record. False: malformed.
bool decode_pick(std::span<const std::byte> record, const PickLimits& limits,
                 DecodeScratch& scratch, DecodedPick& decoded);

struct DecodedReport {
  endpoints::Ticket ticket;
  abi::ReportKind kind;
  std::uint32_t prompt_tokens;
  std::uint32_t cached_tokens;
  std::uint32_t output_tokens;
  std::string_view fallback;
};

bool decode_report(std::span<const std::byte> record, DecodedReport& decoded);

}  // namespace pickd::workers

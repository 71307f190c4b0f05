// A pick request as the pick core sees it: private memory, validated, every string bounded.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "daemon/endpoints/reservations.hpp"

namespace pickd::pick {

struct Attribute {
  std::string_view key;
  std::string_view value;
};

struct PickRequest {
  std::span<const std::uint64_t> keys;       // the prefix chain, root's first child first
  std::uint32_t prompt_tokens = 0;           // of the whole prompt; the keys may cover less
  std::uint32_t expected_output_tokens = 0;  // 0: unknown
  float slo_ttft_ms = 0;                     // 0: none
  float slo_itl_ms = 0;                      // 0: none
  // Who served this prefix or session longer ago draws it no more; 0: as configured.
  std::uint64_t affinity_ttl_ms = 0;
  bool predict = true;  // false: no SLO is sought for it, load and prefix decide
  std::int16_t priority = 0;
  std::uint8_t endpoints_max = abi::kResultEndpointsMax;
  bool stream = false;
  bool multimodal = false;  // the prompt holds images, audio or the like
  bool dry_run = false;     // reserve and remember nothing
  bool has_subset = false;  // `subset` is heeded, an empty one too
  std::string_view model;
  std::string_view adapter;
  std::string_view session;
  std::string_view fairness;
  std::string_view request_id;
  std::span<const std::string_view> subset;  // names or addresses
  std::span<const Attribute> attributes;
  endpoints::Ticket ticket;
  std::uint32_t uid = 0;
  std::uint64_t now_ns = 0;  // of the store's clock, finer than its tick

  // The value of a header or label; nullptr: the request has none of this name. Names of headers
  // are equal whatever their case.
  const std::string_view* attribute(std::string_view key) const {
    for (const Attribute& attribute : attributes) {
      if (same_header(attribute.key, key)) return &attribute.value;
    }
    return nullptr;
  }

  static bool same_header(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t at = 0; at < a.size(); ++at) {
      if (lower(a[at]) != lower(b[at])) return false;
    }
    return true;
  }

 private:
  static char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  }
};

}  // namespace pickd::pick

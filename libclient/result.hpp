// The result behind pickd_result: a private, checked copy of a completion.
#pragma once

#include <cstdint>

#include "abi/channel_layout.hpp"
#include "abi/limits.hpp"
#include "libclient/ring.hpp"
#include "pickd/pickd.h"

struct pickd_result {
  struct Endpoint {
    std::uint32_t match_tokens;
    float score;
    pickd_role role;
    std::uint16_t name_at;  // in text
    std::uint16_t address_at;
  };
  static constexpr std::size_t kTextBytesMax =
      pickd::abi::kResultEndpointsMax *
      (pickd::abi::kEndpointNameBytesMax + 1 + pickd::abi::kEndpointAddressBytesMax + 1);

  int status = 0;
  pickd_ticket ticket{};
  pickd_reason reason = PICKD_REASON_NONE;
  std::uint32_t flags = 0;
  std::uint32_t prompt_tokens = 0;
  float ttft_ms = 0;
  float itl_ms = 0;
  std::uint64_t hash_ns = 0;
  std::size_t endpoint_count = 0;
  Endpoint endpoints[pickd::abi::kResultEndpointsMax];
  bool has_prefill = false;
  Endpoint prefill;
  std::size_t text_bytes = 0;  // of `text`, taken by add()
  char text[kTextBytesMax];

  // Empty, with this status. Returns it.
  int fail(int code);
  // Takes a PickedRecord out of the completion ring. Returns its status, or -EPROTO when it does
  // not hold together.
  int fill(const pickd::client::CompletionRecord& record);
  // Appends an endpoint to a result that fail() has emptied; at most kResultEndpointsMax, strings
  // within their limits.
  void add(const pickd_slice& name, const pickd_slice& address, pickd_role role,
           std::uint32_t match_tokens, float score);

 private:
  bool take_endpoints(const std::byte* endpoints_at, const std::byte* text_at,
                      std::size_t text_size);
  bool take_prefill(const std::byte* at, std::size_t size);
  bool take_endpoint(const std::byte* entry_at, const std::byte* text_at, std::size_t text_size,
                     std::size_t* taken, Endpoint& endpoint);
};

namespace pickd::client {

// The longest PickedRecord that answers a pick which asked for `endpoints_max`. A prefill endpoint
// is one of them: it comes where the record has room for it.
constexpr std::uint64_t picked_bytes_max(std::uint32_t endpoints_max) {
  return sizeof(abi::PickedRecord) +
         endpoints_max * (sizeof(abi::PickedEndpoint) + abi::kEndpointNameBytesMax +
                          abi::kEndpointAddressBytesMax);
}

}  // namespace pickd::client

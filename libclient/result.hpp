// The result behind pickd_result: a private, checked copy of a completion. The winner is taken out
// of it at once, the fallbacks when somebody asks: most callers never do.
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
  std::uint32_t prefill_at = 0;  // in `record`; 0: none
  std::uint32_t encode_at = 0;   // the same

  // Of endpoint `index`, which is below endpoint_count; and of the prefill and encode endpoints,
  // where there are such.
  const Endpoint& endpoint(std::size_t index) const {
    while (index >= taken) take_next();
    return endpoints[index];
  }
  const Endpoint& prefill_endpoint() const {
    if (!prefill_taken) take_stage(prefill_at, prefill);
    prefill_taken = true;
    return prefill;
  }
  const Endpoint& encode_endpoint() const {
    if (!encode_taken) take_stage(encode_at, encode);
    encode_taken = true;
    return encode;
  }

  // Empty, with this status. Returns it.
  int fail(int code);
  // Takes a PickedRecord out of the completion ring. Returns its status, or -EPROTO when it does
  // not hold together. In two steps: copy() is done with the ring, -EPROTO what it finds there;
  // read() looks at the copy.
  int fill(const pickd::client::CompletionRecord& completion) {
    return copy(completion) == 0 ? read() : -EPROTO;
  }
  int copy(const pickd::client::CompletionRecord& completion);
  int read();
  // Appends an endpoint to a result that fail() has emptied; at most kResultEndpointsMax, strings
  // within their limits.
  void add(const pickd_slice& name, const pickd_slice& address, pickd_role role,
           std::uint32_t match_tokens, float score);

  mutable char text[kTextBytesMax];  // what the accessors hand out, terminated

 private:
  static constexpr std::size_t kRecordBytesMax =
      sizeof(pickd::abi::PickedRecord) +
      pickd::abi::kResultEndpointsMax *
          (sizeof(pickd::abi::PickedEndpoint) + pickd::abi::kEndpointNameBytesMax +
           pickd::abi::kEndpointAddressBytesMax);

  bool check_endpoints(std::size_t text_size) const;
  bool check_stages(std::size_t at, std::size_t prefill_bytes, bool has_encode);
  bool check_stage(std::size_t at, std::size_t size) const;
  void take_stage(std::size_t at, Endpoint& endpoint) const {
    take(at, at + sizeof(pickd::abi::PickedEndpoint), endpoint);
  }
  void take_next() const;
  std::size_t take(std::size_t entry_at, std::size_t text_at, Endpoint& endpoint) const;
  std::uint16_t take_text(const std::byte* from, std::size_t size) const;

  // A result belongs to one thread: asking for a fallback may take it out.
  mutable std::size_t taken = 0;       // of `endpoints`
  mutable std::size_t text_bytes = 0;  // of `text`
  mutable std::size_t next_text = 0;   // in `record`, of the next endpoint to take
  mutable bool prefill_taken = false;
  mutable bool encode_taken = false;
  mutable Endpoint endpoints[pickd::abi::kResultEndpointsMax];
  mutable Endpoint prefill;
  mutable Endpoint encode;
  std::size_t record_bytes = 0;
  alignas(8) std::byte record[kRecordBytesMax];
};

namespace pickd::client {

// The longest PickedRecord that answers a pick which asked for `endpoints_max`. A prefill endpoint
// and one that encodes are of them: they come where the record has room.
constexpr std::uint64_t picked_bytes_max(std::uint32_t endpoints_max) {
  return sizeof(abi::PickedRecord) +
         endpoints_max * (sizeof(abi::PickedEndpoint) + abi::kEndpointNameBytesMax +
                          abi::kEndpointAddressBytesMax);
}

}  // namespace pickd::client

// A pick's arguments, checked and measured, and the record made of them. Checks everything before a
// channel is taken; writing cannot fail any more. Knows the ring's record layout, not the ring.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/channel_layout.hpp"
#include "libclient/last_error.hpp"
#include "libclient/prompt_keys.hpp"
#include "libclient/state_view.hpp"
#include "libclient/tick_clock.hpp"
#include "pickd/pickd.h"

namespace pickd::client {

// How a checked request goes into one channel: known once the channel is.
struct PickShape {
  const abi::KeyAlgorithm* algorithm;  // nullptr: no keys
  std::uint32_t key_count;
  bool cut;
  std::uint64_t bytes;             // of the record
  std::uint32_t answer_bytes_max;  // 0: whatever the answer takes
};

class PickRequest {
 public:
  PickRequest() = default;
  PickRequest(const PickRequest&) = delete;
  PickRequest& operator=(const PickRequest&) = delete;

  // Reads and checks `request`; keeps pointers into the caller's memory. -EINVAL, -E2BIG with
  // words.
  int read(const pickd_request* request, LastError& error);

  // -EPROTO when the daemon has no algorithm for this kind of prompt.
  int shape(const StateView& state, std::uint32_t keys_max, PickShape& shape,
            LastError& error) const;

  // Writes the record, hashing the prompt into it. Returns how many nanoseconds that took.
  std::uint64_t write(const PickShape& shape, const StateView& state, const TickClock& clock,
                      std::uint64_t sequence, std::byte* to) const;

  // Hashes the prompt into `keys`, which holds shape.key_count. Returns the nanoseconds.
  std::uint64_t hash(const PickShape& shape, const StateView& state, const TickClock& clock,
                     std::uint64_t* keys) const;

  std::uint32_t endpoints_max() const { return endpoints_max_; }
  std::uint32_t prompt_tokens() const { return prompt_tokens_; }
  // As the caller gave it, checked. Of its subset and attributes the counts and strides here hold.
  const pickd_request& raw() const { return *request_; }
  std::size_t subset_count() const { return subset_count_; }  // 0 unless its flag is set

 private:
  int read_prompt(LastError& error);
  int read_extras(LastError& error);
  int read_fields(LastError& error);
  std::byte* write_fields(std::byte* to) const;
  const pickd_attribute& attribute(std::size_t index) const;

  const pickd_request* request_ = nullptr;  // the caller's, or `copy_`
  pickd_request copy_;                      // set where it is used
  pickd_slice token_segment_{};
  Prompt prompt_;
  std::uint32_t prompt_tokens_ = 0;
  std::uint32_t endpoints_max_ = 0;
  std::uint32_t field_bytes_ = 0;
  std::size_t subset_count_ = 0;
  std::size_t attribute_stride_ = 0;
};

}  // namespace pickd::client

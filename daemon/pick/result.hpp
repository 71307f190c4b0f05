// What a pick decided.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "abi/channel_layout.hpp"
#include "abi/limits.hpp"

namespace pickd::endpoints {
struct TopologyEndpoint;
}

namespace pickd::pick {

class Profile;

struct PickedEndpoint {
  const endpoints::TopologyEndpoint* endpoint =
      nullptr;  // lives as long as the topology of the pick
  std::uint32_t generation = 0;
  std::uint32_t stamp_floor = 0;  // of the generation seen: stamps for it may not lie below
  std::uint32_t match_blocks = 0;
  std::uint32_t match_tokens = 0;
  float score = 0;
};

struct PickResult {
  int status = 0;  // 0 or a negative errno, as in pickd.h
  abi::Reason reason = abi::Reason::kNone;
  std::uint32_t count = 0;
  bool reserved = false;
  bool has_prefill = false;  // `prefill` runs the prompt first; `endpoints` then decode
  bool has_encode = false;   // `encode` turns images and the like into embeddings before that
  std::array<PickedEndpoint, abi::kResultEndpointsMax> endpoints;
  PickedEndpoint prefill;
  PickedEndpoint encode;
  // What picked; lives until the next pick with the same scratch. nullptr: nothing came so far.
  const Profile* profile = nullptr;
  const Profile* prefill_profile = nullptr;
  const Profile* encode_profile = nullptr;
  // Of the request, as the pick heeded them: no more blocks than count, and the session whichever
  // way it was named. Live as long as the request.
  std::span<const std::uint64_t> keys;
  std::string_view session;
  float predicted_ttft_ms;  // NaN: unknown
  float predicted_itl_ms;
};

}  // namespace pickd::pick

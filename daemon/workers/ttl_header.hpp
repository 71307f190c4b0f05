// How long ago an endpoint may have served a request's prefix or session to draw it still: out of a
// header among the attributes, for requests that say how long their cache lives.
//
// The value comes from callers of the gateway: what is no time is read as none and counted.
#pragma once

#include <cstdint>
#include <string_view>

#include "daemon/pick/request.hpp"

namespace pickd::workers {

inline constexpr std::string_view kAffinityTtlName = "x-pickd-affinity-ttl";
inline constexpr std::uint64_t kAffinityTtlMsMax = 24ULL * 3600 * 1000;

// Milliseconds of "90s", "5m", "5min", "1h", or of a bare number of seconds: above 0, at most a
// day. Anything else is 0 and `*ignored` rises.
std::uint64_t parse_ttl_ms(std::string_view text, std::uint32_t* ignored);

// Sets affinity_ttl_ms from the attribute, if there is one.
void read_affinity_ttl(pick::PickRequest& request, std::uint32_t* ignored);

}  // namespace pickd::workers

// Configured spec: what a configuration or an endpoint file says of an endpoint, in the words of
// the endpoint table. Pure.
#pragma once

#include <cstdint>

#include "daemon/config/config.hpp"
#include "daemon/endpoints/endpoint_spec.hpp"

namespace pickd::endpoints {

// Blocks of pickd's size that stand for so many tokens; 0 stays "no limit".
std::uint64_t blocks_of(std::uint64_t tokens, std::uint64_t block_tokens);

EndpointSpec spec_of(const config::EndpointConfig& endpoint, std::uint64_t block_tokens);

}  // namespace pickd::endpoints

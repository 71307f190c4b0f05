#include "daemon/endpoints/configured_spec.hpp"

#include <algorithm>

namespace pickd::endpoints {

std::uint64_t blocks_of(std::uint64_t tokens, std::uint64_t block_tokens) {
  return tokens == 0 ? 0 : std::max<std::uint64_t>(1, tokens / block_tokens);
}

EndpointSpec spec_of(const config::EndpointConfig& endpoint, std::uint64_t block_tokens) {
  EndpointSpec spec;
  spec.name = endpoint.name;
  spec.address = endpoint.address;
  spec.pool = endpoint.pool;
  spec.role = static_cast<abi::Role>(endpoint.role);
  spec.models = endpoint.models;
  spec.labels = endpoint.labels;
  spec.metrics_url = endpoint.metrics_url;
  spec.engine = endpoint.engine;
  spec.rank = endpoint.rank.value_or(abi::kUnknown32);
  spec.capacity_blocks = blocks_of(endpoint.capacity_tokens, block_tokens);
  return spec;
}

}  // namespace pickd::endpoints

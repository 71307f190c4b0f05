#include "daemon/endpoints/routing_snapshot.hpp"

#include <cstring>

#include "pickd_generated.h"

namespace pickd::endpoints {

namespace {

flatbuffers::Offset<fb::RoutingEndpoint> build_endpoint(flatbuffers::FlatBufferBuilder& builder,
                                                        const TopologyEndpoint& endpoint) {
  std::vector<flatbuffers::Offset<fb::Label>> labels;
  for (const auto& [key, value] : endpoint.labels) {
    labels.push_back(
        fb::CreateLabel(builder, builder.CreateString(key), builder.CreateString(value)));
  }
  const auto name = builder.CreateString(endpoint.name);
  const auto address = builder.CreateString(endpoint.address);
  const auto pool = builder.CreateString(endpoint.pool);
  const auto models = builder.CreateVectorOfStrings(endpoint.models);
  const auto label_list = builder.CreateVector(labels);
  const auto active = builder.CreateVectorOfStrings(endpoint.adapters_active);
  const auto adapters = fb::CreateAdapters(builder, 0, active);
  const auto source = builder.CreateString(endpoint.source);
  const auto metrics_url = builder.CreateString(endpoint.metrics_url);
  const auto engine = builder.CreateString(endpoint.engine);
  const auto more_ports = builder.CreateVector(endpoint.more_ports);
  const auto spec = fb::CreateEndpoint(
      builder, name, address, pool, static_cast<std::uint8_t>(endpoint.role), models, label_list, 0,
      0, adapters, metrics_url, engine, endpoint.rank, more_ports);
  return fb::CreateRoutingEndpoint(builder, endpoint.id, endpoint.generation, source, spec);
}

std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

TopologyEndpoint to_endpoint(const fb::RoutingEndpoint& routing) {
  TopologyEndpoint endpoint;
  endpoint.id = routing.id();
  endpoint.generation = routing.generation();
  endpoint.source = text_of(routing.source());
  const fb::Endpoint& spec = *routing.endpoint();
  endpoint.name = text_of(spec.name());
  endpoint.address = text_of(spec.address());
  endpoint.pool = text_of(spec.pool());
  endpoint.role = static_cast<abi::Role>(spec.role());
  if (spec.models() != nullptr) {
    for (const auto* model : *spec.models()) endpoint.models.push_back(model->str());
  }
  if (spec.labels() != nullptr) {
    for (const auto* label : *spec.labels()) {
      endpoint.labels.emplace_back(text_of(label->key()), text_of(label->value()));
    }
  }
  if (spec.adapters() != nullptr && spec.adapters()->active() != nullptr) {
    for (const auto* adapter : *spec.adapters()->active())
      endpoint.adapters_active.push_back(adapter->str());
  }
  endpoint.metrics_url = text_of(spec.metrics_url());
  endpoint.engine = text_of(spec.engine());
  endpoint.rank = spec.rank();
  if (spec.more_ports() != nullptr)
    endpoint.more_ports.assign(spec.more_ports()->begin(), spec.more_ports()->end());
  return endpoint;
}

void build(flatbuffers::FlatBufferBuilder& builder,
           const std::vector<TopologyEndpoint>& endpoints) {
  std::vector<flatbuffers::Offset<fb::RoutingEndpoint>> built;
  built.reserve(endpoints.size());
  for (const TopologyEndpoint& endpoint : endpoints)
    built.push_back(build_endpoint(builder, endpoint));
  builder.Finish(fb::CreateRouting(builder, builder.CreateVector(built)));
}

}  // namespace

std::uint64_t routing_bytes(const std::vector<TopologyEndpoint>& endpoints) {
  flatbuffers::FlatBufferBuilder builder;
  build(builder, endpoints);
  return builder.GetSize() + sizeof(std::uint64_t);
}

bool write_routing(const RoutingParts& parts, const Topology& topology) {
  flatbuffers::FlatBufferBuilder builder;
  build(builder, topology.endpoints());
  const bool fits = builder.GetSize() + sizeof(std::uint64_t) <= parts.bytes;
  const std::uint64_t bytes = fits ? builder.GetSize() : 0;

  const std::uint64_t version = parts.version->load(std::memory_order_relaxed) & ~1ULL;
  std::byte* buffer = parts.buffers[((version / 2) + 1) & 1];
  // Odd while the other buffer is written; partner: readers, which look at the version before and
  // after.
  parts.version->store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(buffer, &bytes, sizeof bytes);
  if (fits) std::memcpy(buffer + sizeof bytes, builder.GetBufferPointer(), bytes);
  parts.version->store(version + 2, std::memory_order_release);
  return fits;
}

std::optional<std::vector<TopologyEndpoint>> read_routing(const RoutingParts& parts) {
  const std::uint64_t version = parts.version->load(std::memory_order_acquire) & ~1ULL;
  if (version == 0) return std::nullopt;
  const std::byte* buffer = parts.buffers[(version / 2) & 1];
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, buffer, sizeof bytes);
  if (bytes == 0 || bytes > parts.bytes - sizeof bytes) return std::nullopt;
  std::vector<std::uint8_t> copy(bytes);
  std::memcpy(copy.data(), buffer + sizeof bytes, bytes);
  flatbuffers::Verifier verifier(copy.data(), copy.size(), abi::kControlDepthMax,
                                 abi::kEndpointIdsMax * 256U);
  if (!verifier.VerifyBuffer<fb::Routing>(nullptr)) return std::nullopt;
  const auto* routing = flatbuffers::GetRoot<fb::Routing>(copy.data());
  std::vector<TopologyEndpoint> endpoints;
  if (routing->endpoints() == nullptr) return endpoints;
  for (const fb::RoutingEndpoint* endpoint : *routing->endpoints()) {
    if (endpoint->endpoint() == nullptr) return std::nullopt;
    endpoints.push_back(to_endpoint(*endpoint));
  }
  return endpoints;
}

}  // namespace pickd::endpoints

// Routing: see routing.hpp.
#include "libclient/routing.hpp"

#include <stdlib.h>
#include <string.h>

namespace pickd::client {

namespace {

// A snapshot may change while it is copied; the daemon writes one only when endpoints change.
constexpr int kTries = 4;
constexpr std::uint32_t kTablesMax = abi::kEndpointIdsMax * 256U;

bool equal(const flatbuffers::String* text, const pickd_slice& slice) {
  return text != nullptr && text->size() == slice.size &&
         ::memcmp(text->data(), slice.data, slice.size) == 0;
}

bool is_text(const flatbuffers::String* text, std::size_t bytes_max) {
  return text != nullptr && text->size() != 0 && text->size() <= bytes_max;
}

}  // namespace

Routing::~Routing() {
  ::free(copy_);
  ::free(endpoints_);
}

bool Routing::reserve(std::uint64_t bytes) {
  if (endpoints_ == nullptr) {
    endpoints_ = static_cast<Endpoint*>(::calloc(abi::kEndpointIdsMax, sizeof(Endpoint)));
    if (endpoints_ == nullptr) return false;
  }
  if (capacity_ >= bytes) return true;
  ::free(copy_);
  copy_ = static_cast<std::byte*>(::malloc(bytes));  // aligned for any scalar of a FlatBuffer
  capacity_ = copy_ == nullptr ? 0 : bytes;
  return copy_ != nullptr;
}

bool Routing::refresh(const StoreView& store) {
  for (int turn = 0; turn < kTries; ++turn) {
    const std::uint64_t version = store.routing_version();
    if (version != 0 && version == version_ && store.instance_id() == instance_) break;
    count_ = 0;
    version_ = 0;
    if (version == 0 || !reserve(store.routing_bytes())) break;
    const std::uint64_t bytes = store.copy_routing(version, copy_);
    if (bytes == 0) continue;
    version_ = version;
    instance_ = store.instance_id();
    parse(bytes, store.endpoint_ids());
    break;
  }
  return count_ != 0;
}

void Routing::parse(std::uint64_t bytes, std::uint32_t endpoint_ids) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(copy_);
  flatbuffers::Verifier verifier(data, bytes, abi::kControlDepthMax, kTablesMax);
  if (!verifier.VerifyBuffer<fb::Routing>(nullptr)) return;
  const auto* list = flatbuffers::GetRoot<fb::Routing>(data)->endpoints();
  if (list == nullptr) return;
  for (const fb::RoutingEndpoint* entry : *list) {
    const fb::Endpoint* spec = entry->endpoint();
    if (spec == nullptr || entry->id() == 0 || entry->id() >= endpoint_ids) continue;
    if (!is_text(spec->name(), abi::kEndpointNameBytesMax) ||
        !is_text(spec->address(), abi::kEndpointAddressBytesMax)) {
      continue;
    }
    if (count_ == abi::kEndpointIdsMax) return;
    endpoints_[count_++] = {spec, entry->generation(), entry->id()};
  }
}

bool Routing::serves(const Endpoint& endpoint, const pickd_slice& model) {
  const auto* models = endpoint.spec->models();
  if (model.size == 0 || models == nullptr || models->size() == 0) return true;
  for (const flatbuffers::String* served : *models) {
    if (equal(served, model)) return true;
  }
  return false;
}

bool Routing::is_called(const Endpoint& endpoint, const pickd_slice& text) {
  return equal(endpoint.spec->name(), text) || equal(endpoint.spec->address(), text);
}

}  // namespace pickd::client

// Routing: who serves which model under which name, read from the routing snapshot of the state
// segment. A private copy, verified once and read again when the snapshot's version changes; no
// allocation as long as it does not. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libclient/store_view.hpp"
#include "pickd/pickd.h"
#include "pickd_generated.h"

namespace pickd::client {

class Routing {
 public:
  struct Endpoint {
    const fb::Endpoint* spec;  // in the private copy; has a name and an address
    std::uint32_t generation;
    std::uint16_t id;  // below StoreView::endpoint_ids(), not 0
  };

  Routing() = default;
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;
  ~Routing();

  // Makes this the newest snapshot of `store`. False when it knows no endpoint: none was ever
  // written, it is damaged, or memory is out.
  bool refresh(const StoreView& store);

  std::uint32_t count() const { return count_; }
  const Endpoint& endpoint(std::uint32_t index) const { return endpoints_[index]; }
  // Whether it serves `model` (empty: any).
  static bool serves(const Endpoint& endpoint, const pickd_slice& model);
  static bool is_called(const Endpoint& endpoint, const pickd_slice& text);  // name or address

 private:
  bool reserve(std::uint64_t bytes);
  void parse(std::uint64_t bytes, std::uint32_t endpoint_ids);

  std::byte* copy_ = nullptr;
  std::uint64_t capacity_ = 0;
  Endpoint* endpoints_ = nullptr;  // kEndpointIdsMax
  std::uint32_t count_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t instance_ = 0;
};

}  // namespace pickd::client

// ModelStore: the part of the state segment in which what was learned survives a restart. Bytes in
// shared memory on one side, numbers on the other; knows nothing of what they mean.
//
// One thread. What was being written when the daemon died is told by its check, and the one before
// is taken; what makes no sense is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "abi/model_layout.hpp"
#include "daemon/latency/memory.hpp"

namespace pickd::maintenance {

class ModelStore {
 public:
  struct Parts {
    abi::ModelRecord* records;  // two of each class
    abi::Word* endpoints;       // an EndpointModelWord each
    std::uint32_t classes;
    std::uint32_t endpoint_ids;
  };

  // Reads what a daemon before this one left.
  explicit ModelStore(const Parts& parts);

  // What was left of the class of this key; once.
  std::optional<latency::ClassMemory> take(std::uint64_t class_key);
  // What was left of an endpoint, if it still is of this generation.
  std::optional<latency::EndpointMemory> endpoint(std::uint32_t id, std::uint32_t generation) const;

  void write(std::uint32_t class_id, std::uint64_t class_key, const latency::ClassMemory& memory);
  void write_endpoint(std::uint32_t id, std::uint32_t generation,
                      const latency::EndpointMemory& memory);

 private:
  Parts parts_;
  std::uint64_t sequence_ = 0;
  std::unordered_map<std::uint64_t, latency::ClassMemory> left_;  // by class key
};

}  // namespace pickd::maintenance

// What somebody said of an endpoint: the input of the endpoint table, whoever the source is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "abi/state_layout.hpp"
#include "daemon/base/result.hpp"

namespace pickd::endpoints {

constexpr std::uint64_t kCapacityBlocksMax = 1'000'000'000;

struct EndpointSpec {
  std::string name;
  std::string address;
  std::string pool = "default";
  abi::Role role = abi::Role::kBoth;
  std::vector<std::string> models;  // none: serves any model
  std::vector<std::pair<std::string, std::string>> labels;
  std::uint64_t capacity_blocks = 0;  // 0: the configured capacity

  std::string metrics_url;               // empty: http://<address>/metrics
  std::string engine;                    // whose metrics they are; empty: detected
  std::uint32_t rank = abi::kUnknown32;  // among those behind one metrics page; kUnknown32: none
  // Ports of the further ranks that this one endpoint stands for: each has a metrics page of its
  // own, where the first one's is but for the port, and the load is that of all of them together.
  std::vector<std::uint16_t> more_ports = {};

  // Whether its source wants no new picks there. Nothing: the source does not say, and what an
  // operator said stays; else a change of the source's word counts, its repetition does not.
  std::optional<bool> draining = {};
  // Which life of the engine this is, in words of the source (a pod's uid): another one is another
  // engine, though name and address are the same. Empty: the source does not know.
  std::string incarnation = {};

  // Load as told by the source; kUnknown32 where it was not.
  std::uint32_t waiting = abi::kUnknown32;
  std::uint32_t running = abi::kUnknown32;
  std::uint32_t kv_use_ppm = abi::kUnknown32;

  std::uint32_t adapters_max = 0;  // 0: not told
  std::vector<std::string> adapters_active;
  std::vector<std::string> adapters_waiting;

  bool operator==(const EndpointSpec&) const = default;
};

// Refuses empty or over-long names and addresses, addresses that nothing could be sent to, too many
// models, labels or adapters. The same for all sources.
base::Result<void> check_spec(const EndpointSpec& spec);

// The hash under which an adapter stands in an endpoint's record. Never 0.
std::uint32_t adapter_hash(const void* name, std::size_t size);

}  // namespace pickd::endpoints

// PoolConfig: what the file says of a pool beside its endpoints: where more are found, and how many
// data-parallel ranks each has. Plain data; read by pools_section.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/config/tree.hpp"

namespace pickd::config {

// Values as in pickd_role of pickd.h and Endpoint.role of pickd.fbs.
enum class Role : std::uint8_t { kBoth = 0, kDecode = 1, kPrefill = 2, kEncode = 3 };

// The data-parallel ranks behind each address of a pool.
struct RanksConfig {
  enum class As : std::uint8_t { kEndpoints, kOne };
  enum class Behind : std::uint8_t { kOnePort, kConsecutivePorts, kListedPorts };

  std::uint64_t count = 1;
  Behind behind = Behind::kOnePort;
  std::vector<std::uint32_t> ports;  // of kListedPorts: as many as `count`
  As as = As::kEndpoints;

  bool operator==(const RanksConfig&) const = default;
};

struct FileDiscoveryConfig {
  std::string path;  // a file or a directory; absolute, or from the working directory

  bool operator==(const FileDiscoveryConfig&) const = default;
};

struct DnsDiscoveryConfig {
  enum class Type : std::uint8_t { kA, kAaaa, kBoth, kSrv };

  std::string name;
  Type type = Type::kA;
  std::uint64_t port = 0;            // not of kSrv, whose records bring theirs
  std::vector<std::string> servers;  // none: those of resolv.conf
  std::uint64_t ttl_min_ms = 0;
  std::uint64_t ttl_max_ms = 0;
  std::uint64_t timeout_ms = 0;

  bool operator==(const DnsDiscoveryConfig&) const = default;
};

// Either `service` or `inference_pool` is set.
struct KubernetesDiscoveryConfig {
  std::string service;         // its EndpointSlices
  std::string inference_pool;  // its pods
  std::string name_space;      // empty: that of the service account
  std::string port;            // of `service`: a port's name or number; empty: the first there is
  std::vector<std::pair<std::string, std::string>> labels;  // further labels of the slices or pods
  std::string api_server;  // a URL; empty: as Kubernetes tells every pod
  std::string token_file;
  std::string ca_file;
  std::string namespace_file;

  bool operator==(const KubernetesDiscoveryConfig&) const = default;
};

// One of the three sources is set. The rest holds for each endpoint that it finds and that says
// nothing else itself.
struct DiscoveryConfig {
  std::optional<FileDiscoveryConfig> file;
  std::optional<DnsDiscoveryConfig> dns;
  std::optional<KubernetesDiscoveryConfig> kubernetes;
  Role role = Role::kBoth;
  std::vector<std::pair<std::string, std::string>> labels;
  std::uint64_t capacity_tokens = 0;
  Place place;

  bool operator==(const DiscoveryConfig&) const = default;
};

// A pool of which there is more to say than its endpoints.
struct PoolConfig {
  std::string name;
  std::vector<std::string> models;
  std::optional<RanksConfig> ranks;
  std::optional<DiscoveryConfig> discovery;
  Place place;

  bool operator==(const PoolConfig&) const = default;
};

}  // namespace pickd::config

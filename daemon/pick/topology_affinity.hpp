// How near two endpoints are: the tightest level (host, rack, zone, region) at which their labels
// agree. What the topology-affinity scorer and filter share.
#pragma once

#include <array>
#include <string>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

class TopologyAffinity {
 public:
  enum Level : std::uint8_t { kHost, kRack, kZone, kRegion, kNone };

  explicit TopologyAffinity(Parameters& parameters);
  static std::vector<ParameterInfo> parameters();

  // Whether the endpoint has any of the labels.
  bool placed(const endpoints::TopologyEndpoint& endpoint) const;
  Level nearness(const endpoints::TopologyEndpoint& a, const endpoints::TopologyEndpoint& b) const;

 private:
  std::array<std::string, kNone> labels_;
};

}  // namespace pickd::pick

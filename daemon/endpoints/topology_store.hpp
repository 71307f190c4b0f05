// Hands the newest Topology to the workers; see base/published.hpp. The control thread publishes.
#pragma once

#include <memory>
#include <vector>

#include "abi/limits.hpp"
#include "daemon/base/published.hpp"
#include "daemon/endpoints/topology.hpp"

namespace pickd::endpoints {

class TopologyStore : public base::Published<Topology, abi::kThreadsCountedMax> {
 public:
  TopologyStore() : Published(std::make_unique<const Topology>(std::vector<TopologyEndpoint>{})) {}
};

}  // namespace pickd::endpoints

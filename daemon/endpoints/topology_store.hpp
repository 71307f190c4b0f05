// Hands the newest Topology to the workers; see base/published.hpp. The control thread publishes.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "abi/limits.hpp"
#include "daemon/base/published.hpp"
#include "daemon/endpoints/topology.hpp"

namespace pickd::endpoints {

class TopologyStore : public base::Published<Topology, abi::kThreadsCountedMax> {
 public:
  TopologyStore() : Published(std::make_unique<const Topology>(std::vector<TopologyEndpoint>{})) {}

  void publish(std::unique_ptr<const Topology> next) {
    Published::publish(std::move(next));
    if (published_) published_();
  }
  // Called at the end of each publish(), from inside whatever changed the endpoints; nullptr: not
  // any more. Control thread only.
  void on_publish(std::function<void()> published) { published_ = std::move(published); }

 private:
  std::function<void()> published_;
};

}  // namespace pickd::endpoints

#include "daemon/pick/topology_affinity.hpp"

#include <algorithm>

namespace pickd::pick {

std::vector<ParameterInfo> TopologyAffinity::parameters() {
  return {{"hostLabel", ParameterKind::kText, "kubernetes.io/hostname", 1, 255, "",
           "Label that names the host."},
          {"rackLabel", ParameterKind::kText, "topology.kubernetes.io/rack", 1, 255, "",
           "Label that names the rack."},
          {"zoneLabel", ParameterKind::kText, "topology.kubernetes.io/zone", 1, 255, "",
           "Label that names the zone."},
          {"regionLabel", ParameterKind::kText, "topology.kubernetes.io/region", 1, 255, "",
           "Label that names the region."},
          {"topologyProducerName", ParameterKind::kText, "", 0, 127, "",
           "Taken; pickd reads the labels above."}};
}

TopologyAffinity::TopologyAffinity(Parameters& parameters)
    : labels_{parameters.text("hostLabel"), parameters.text("rackLabel"),
              parameters.text("zoneLabel"), parameters.text("regionLabel")} {}

bool TopologyAffinity::placed(const endpoints::TopologyEndpoint& endpoint) const {
  return std::any_of(labels_.begin(), labels_.end(), [&](const std::string& key) {
    const std::string* label = endpoint.label(key);
    return label != nullptr && !label->empty();
  });
}

TopologyAffinity::Level TopologyAffinity::nearness(const endpoints::TopologyEndpoint& a,
                                                   const endpoints::TopologyEndpoint& b) const {
  for (std::uint8_t level = kHost; level < kNone; ++level) {
    const std::string* of_a = a.label(labels_[level]);
    const std::string* of_b = b.label(labels_[level]);
    // A missing value never agrees, not even with another missing one.
    if (of_a != nullptr && of_b != nullptr && !of_a->empty() && *of_a == *of_b)
      return static_cast<Level>(level);
  }
  return kNone;
}

}  // namespace pickd::pick

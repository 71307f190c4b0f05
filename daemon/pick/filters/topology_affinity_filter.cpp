// topology-affinity-filter: keeps endpoints near the one picked before for the same request. Nobody
// near, or nothing known: everybody, because nearness must not make a request unroutable.
#include <algorithm>

#include "daemon/pick/topology_affinity.hpp"

namespace pickd::pick {

namespace {

class TopologyAffinityFilter final : public Filter, public TopologyAffinity {
 public:
  explicit TopologyAffinityFilter(Parameters& parameters) : TopologyAffinity(parameters) {
    const std::string least = parameters.choice("minAffinity");
    least_ = least == "host" ? kHost : least == "rack" ? kRack : least == "zone" ? kZone : kRegion;
  }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    if (context.peer == nullptr || !placed(*context.peer)) return;
    bool anybody = false;
    for (std::size_t at = 0; at < keep.size(); ++at) {
      keep[at] = nearness(*context.candidates.endpoints()[at], *context.peer) <= least_;
      anybody |= keep[at] != 0;
    }
    if (!anybody) std::fill(keep.begin(), keep.end(), std::uint8_t{1});
  }

 private:
  Level least_;
};

std::vector<ParameterInfo> parameters() {
  std::vector<ParameterInfo> all = TopologyAffinity::parameters();
  all.push_back({"minAffinity", ParameterKind::kChoice, "host", 0, 0, "host|rack|zone|region",
                 "How near an endpoint must be."});
  return all;
}

}  // namespace

PluginInfo describe_topology_affinity_filter() {
  return {"topology-affinity-filter",
          PluginKind::kFilter,
          0,
          "In the prefill profile: keeps endpoints near the decode endpoint; everybody when none "
          "is, or when nothing is known of its place.",
          "",
          parameters(),
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<TopologyAffinityFilter>(parameters);
          }};
}

}  // namespace pickd::pick

// topology-affinity-scorer: how near an endpoint is to the one picked before for the same request:
// of a prefill endpoint, to the decode endpoint.
#include "daemon/pick/topology_affinity.hpp"

namespace pickd::pick {

namespace {

constexpr float kScores[] = {1.0F, 0.2F, 0.05F, 0.02F, 0.0F};  // by level

class TopologyAffinityScorer final : public Scorer, public TopologyAffinity {
 public:
  using TopologyAffinity::TopologyAffinity;

  bool score(const PickContext& context, std::span<float> scores) const override {
    if (context.peer == nullptr || !placed(*context.peer)) return true;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      scores[at] = kScores[nearness(*context.candidates.endpoints()[at], *context.peer)];
    }
    return true;
  }
};

}  // namespace

PluginInfo describe_topology_affinity_scorer() {
  return {"topology-affinity-scorer",
          PluginKind::kScorer,
          0,
          "In the prefill profile: prefers endpoints near the decode endpoint.",
          "1 same host, 0.2 same rack, 0.05 same zone, 0.02 same region, else 0; nothing without a "
          "decode endpoint or its labels",
          TopologyAffinity::parameters(),
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<TopologyAffinityScorer>(parameters);
          }};
}

}  // namespace pickd::pick

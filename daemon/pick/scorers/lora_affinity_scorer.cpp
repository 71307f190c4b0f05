// lora-affinity-scorer: who has the request's adapter. The column holds the score already: see
// produce_adapter() in producers.cpp.
#include <cmath>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class LoraAffinityScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto adapter = context.candidates.column(Column::kAdapter);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (!std::isnan(adapter[at])) scores[at] = adapter[at];
    }
    return true;
  }
};

}  // namespace

PluginInfo describe_lora_affinity_scorer() {
  return {
      "lora-affinity-scorer",
      PluginKind::kScorer,
      columns_of(Column::kAdapter),
      "Prefers endpoints that have the request's adapter loaded.",
      "1 loaded, or sent there by us before; 0.8 room for it (active + waiting < max); 0.6 being "
      "loaded; 0 no room; nothing where the engine tells no adapters",
      {},
      [](Parameters&) -> std::unique_ptr<Plugin> {
        return std::make_unique<LoraAffinityScorer>();
      }};
}

}  // namespace pickd::pick

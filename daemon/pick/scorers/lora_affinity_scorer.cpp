// lora-affinity-scorer: who has the request's adapter. The column holds the score already: see
// produce_adapter() in producers.cpp.
#include <cmath>

#include "daemon/pick/plugin.hpp"

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

std::unique_ptr<Plugin> make_lora_affinity_scorer(config::ParameterReader&) {
  return std::make_unique<LoraAffinityScorer>();
}

}  // namespace pickd::pick

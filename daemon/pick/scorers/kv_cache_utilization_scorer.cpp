// kv-cache-utilization-scorer: how much of its KV cache the engine has free.
#include <cmath>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

class KvCacheUtilizationScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto kv_use = context.candidates.column(Column::kKvUse);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      if (!std::isnan(kv_use[at])) scores[at] = 1.0F - kv_use[at];
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_kv_cache_utilization_scorer(config::ParameterReader&) {
  return std::make_unique<KvCacheUtilizationScorer>();
}

}  // namespace pickd::pick

// kv-cache-utilization-scorer: how much of its KV cache the engine has free.
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class KvCacheUtilizationScorer final : public Scorer {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto kv_use = context.candidates.column(Column::kKvUse);
    for (std::size_t at = 0; at < scores.size(); ++at)
      scores[at] = kv_use[at] == kv_use[at] ? 1.0F - kv_use[at] : scores[at];
    return true;
  }
};

}  // namespace

PluginInfo describe_kv_cache_utilization_scorer() {
  return {"kv-cache-utilization-scorer",
          PluginKind::kScorer,
          columns_of(Column::kKvUse),
          "Prefers endpoints whose engine has more of its KV cache free.",
          "1 - share in use; nothing where it is unknown",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> {
            return std::make_unique<KvCacheUtilizationScorer>();
          }};
}

}  // namespace pickd::pick

// prefix-cache-scorer: share of the prompt's blocks an endpoint holds, as in the Endpoint Picker;
// an optional second term lets the length of a match count beside its share. Older configurations
// say here what the approx-prefix-cache-producer says now.
#include <algorithm>
#include <optional>

#include "daemon/pick/parameters.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

namespace {

// The least block of the approx-prefix-cache-producer, which counts the older blocks here too.
constexpr std::uint64_t kBlockTokens = 64;

// What the older parameters say; nothing where they are not given.
struct Extent {
  std::uint64_t prefix_tokens_max = 0;
  std::optional<std::uint64_t> capacity_tokens;
};

class PrefixCacheScorer final : public Scorer, public Source {
 public:
  PrefixCacheScorer(double length_weight, double length_scale_tokens, const Extent& extent)
      : length_weight_(static_cast<float>(length_weight)),
        length_scale_tokens_(static_cast<float>(length_scale_tokens)),
        extent_(extent) {}

  // A producer that is listed says it better, wherever it stands: it writes over this.
  void apply(SourceSettings& settings) const override {
    if (settings.prefix_tokens_max == 0) settings.prefix_tokens_max = extent_.prefix_tokens_max;
    if (!settings.capacity_tokens) settings.capacity_tokens = extent_.capacity_tokens;
  }

  bool score(const PickContext& context, std::span<float> scores) const override {
    const std::size_t total = context.request.keys.size();
    const auto match_blocks = context.candidates.column(Column::kMatchBlocks);
    const auto uncached = context.candidates.column(Column::kUncachedTokens);
    const auto prompt_tokens = static_cast<float>(context.request.prompt_tokens);
    const float share = total == 0 ? 0.0F : (1.0F - length_weight_) / static_cast<float>(total);
    for (std::size_t at = 0; at < scores.size(); ++at) scores[at] = share * match_blocks[at];
    if (length_weight_ == 0.0F) return true;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const float length = std::min(1.0F, (prompt_tokens - uncached[at]) / length_scale_tokens_);
      scores[at] += length_weight_ * length * length;
    }
    return true;
  }

 private:
  float length_weight_;
  float length_scale_tokens_;
  Extent extent_;
};

Extent read_extent(Parameters& parameters) {
  Extent extent;
  const std::uint64_t blocks_max = parameters.integer("maxPrefixBlocksToMatch");
  const std::uint64_t capacity_blocks = parameters.integer("lruCapacityPerServer");
  extent.prefix_tokens_max = blocks_max * kBlockTokens;
  if (!parameters.boolean("autoTune")) extent.capacity_tokens = capacity_blocks * kBlockTokens;
  return extent;
}

}  // namespace

PluginInfo describe_prefix_cache_scorer() {
  return {"prefix-cache-scorer",
          PluginKind::kScorer,
          columns_of(Column::kMatchBlocks, Column::kUncachedTokens),
          "Prefers endpoints that hold more of the prompt's prefix.",
          "(1 - w) match / total blocks + w min(1, matched tokens / scale)^2, with w = "
          "matchLengthWeight and scale = matchLengthScaleTokens; 0 without a prompt",
          {{"matchLengthWeight", ParameterKind::kNumber, "0", 0, 1, "",
            "Share of the score that the length of a match decides."},
           {"matchLengthScaleTokens", ParameterKind::kNumber, "8192", 1, 1e9, "",
            "Tokens of a match from which its length counts in full."},
           {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one prefix table."},
           {"autoTune", ParameterKind::kBoolean, "true", 0, 0, "",
            "This and what follows: of older configurations, as at approx-prefix-cache-producer, "
            "which wins where both say it."},
           {"lruCapacityPerServer", ParameterKind::kInteger, "31250", 1, 1e9, "",
            "Blocks of 64 tokens that an endpoint holds, without autoTune."},
           {"maxPrefixBlocksToMatch", ParameterKind::kInteger, "0", 0, 1e7, "",
            "Blocks of 64 tokens of a prompt that count; 0: no limit but the key limit."},
           {"blockSize", ParameterKind::kInteger, "0", 0, 1e6, "",
            "Taken without effect: characters of a block."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const double weight = parameters.number("matchLengthWeight");
            const double scale = parameters.number("matchLengthScaleTokens");
            return std::make_unique<PrefixCacheScorer>(weight, scale, read_extent(parameters));
          }};
}

}  // namespace pickd::pick

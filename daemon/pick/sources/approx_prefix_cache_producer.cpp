// approx-prefix-cache-producer: how the prefix table is used. pickd has one table for all; this
// says how much of a prompt counts and what an endpoint is taken to hold.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

namespace {

constexpr std::uint64_t kEngineBlockTokensMin = 64;  // the Endpoint Picker's floor

struct Settings {
  std::uint64_t prefix_tokens_max;
  std::uint64_t capacity_tokens;  // 0: the engine tells, or the state section
};

class ApproxPrefixCacheProducer final : public Source {
 public:
  explicit ApproxPrefixCacheProducer(const Settings& settings) : settings_(settings) {}

  void apply(SourceSettings& settings) const override {
    settings.prefix_tokens_max = settings_.prefix_tokens_max;
    if (settings_.capacity_tokens != 0) settings.capacity_tokens = settings_.capacity_tokens;
  }

 private:
  Settings settings_;
};

std::unique_ptr<Plugin> make(Parameters& parameters) {
  Settings settings{};
  const std::uint64_t block_tokens =
      std::max(kEngineBlockTokensMin, parameters.integer("blockSizeTokens"));
  settings.prefix_tokens_max = parameters.integer("maxPrefixTokensToMatch");
  if (settings.prefix_tokens_max == 0)
    settings.prefix_tokens_max = parameters.integer("maxPrefixBlocksToMatch") * block_tokens;
  if (!parameters.boolean("autoTune"))
    settings.capacity_tokens = parameters.integer("lruCapacityPerServer") * block_tokens;
  return std::make_unique<ApproxPrefixCacheProducer>(settings);
}

}  // namespace

PluginInfo describe_approx_prefix_cache_producer() {
  return {"approx-prefix-cache-producer",
          PluginKind::kSource,
          0,
          "How much of a prompt counts, and what an endpoint is taken to hold. Made by itself.",
          "match: leading blocks of the prompt that an endpoint is assumed to hold",
          {{"autoTune", ParameterKind::kBoolean, "true", 0, 0, "",
            "The capacity of an endpoint is what its engine tells (blocks x tokens of a block, in "
            "blocks of pickd's size), else state.capacity_tokens; false: the next two say it, at "
            "the start only."},
           {"lruCapacityPerServer", ParameterKind::kInteger, "31250", 1, 1e9, "",
            "Blocks of blockSizeTokens that an endpoint holds, without autoTune."},
           {"blockSizeTokens", ParameterKind::kInteger, "64", 1, 1024, "",
            "Tokens of such a block, at least 64; pickd's own block is state.block_tokens."},
           {"maxPrefixTokensToMatch", ParameterKind::kInteger, "131072", 0, 1e9, "",
            "Prompt tokens that count; 0: as maxPrefixBlocksToMatch says."},
           {"maxPrefixBlocksToMatch", ParameterKind::kInteger, "2048", 0, 1e7, "",
            "The same in blocks, where maxPrefixTokensToMatch is 0; both 0: no limit but the key "
            "limit."},
           {"blockSize", ParameterKind::kInteger, "0", 0, 1e6, "",
            "Taken without effect: characters of a block, of old configurations."}},
          make};
}

}  // namespace pickd::pick

// prefix-based-pd-decider, always-disagg-pd-decider and always-disagg-multimodal-decider: when a
// stage of a request goes to another endpoint.
#include "daemon/pick/handler.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class PrefixBasedDecider final : public Decider {
 public:
  PrefixBasedDecider(std::uint64_t uncached_tokens, std::uint64_t prompt_tokens)
      : uncached_tokens_(uncached_tokens), prompt_tokens_(prompt_tokens) {}

  bool split(const PickRequest& request, std::uint32_t uncached_tokens) const override {
    return uncached_tokens_ != 0 && request.prompt_tokens >= prompt_tokens_ &&
           uncached_tokens >= uncached_tokens_;
  }

 private:
  std::uint64_t uncached_tokens_;
  std::uint64_t prompt_tokens_;
};

class AlwaysDecider final : public Decider {
 public:
  bool split(const PickRequest&, std::uint32_t) const override { return true; }
};

class MultimodalDecider final : public Decider {
 public:
  bool split(const PickRequest& request, std::uint32_t) const override {
    return request.multimodal;
  }
};

}  // namespace

PluginInfo describe_prefix_based_pd_decider() {
  return {"prefix-based-pd-decider",
          PluginKind::kDecider,
          0,
          "Splits prompts of which the decode endpoint lacks much.",
          "prompt tokens >= promptTokens and uncached tokens at the decode endpoint >= "
          "nonCachedTokens",
          {{"nonCachedTokens", ParameterKind::kInteger, "0", 0, 1e9, "",
            "Uncached tokens from which a request is split; 0: never."},
           {"promptTokens", ParameterKind::kInteger, "0", 0, 1e9, "",
            "Prompts below this are not split."},
           {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one prefix table."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const std::uint64_t uncached = parameters.integer("nonCachedTokens");
            return std::make_unique<PrefixBasedDecider>(uncached,
                                                        parameters.integer("promptTokens"));
          }};
}

PluginInfo describe_always_disagg_pd_decider() {
  return {"always-disagg-pd-decider",
          PluginKind::kDecider,
          0,
          "Splits every request.",
          "",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<AlwaysDecider>(); }};
}

PluginInfo describe_always_disagg_multimodal_decider() {
  return {
      "always-disagg-multimodal-decider",
      PluginKind::kDecider,
      0,
      "Splits requests whose prompt holds images, audio or the like: extras, or such as stand in "
      "the text, of which a gateway tells by PICKD_REQUEST_MEDIA, as libpickd-body does, or by a "
      "number above 0 in the attribute x-pickd-media.",
      "",
      {},
      [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<MultimodalDecider>(); }};
}

}  // namespace pickd::pick

// inflight-load-producer: what a request of ours counts as load. pickd counts requests and uncached
// prompt tokens; this adds tokens to come.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

namespace {

class InflightLoadProducer final : public Source {
 public:
  InflightLoadProducer(double output_ratio, std::uint64_t output_tokens_max)
      : output_ratio_(output_ratio), output_tokens_max_(output_tokens_max) {}

  void apply(SourceSettings& settings) const override {
    settings.output_ratio = output_ratio_;
    settings.output_tokens_max = output_tokens_max_;
  }

 private:
  double output_ratio_;
  std::uint64_t output_tokens_max_;
};

}  // namespace

PluginInfo describe_inflight_load_producer() {
  return {
      "inflight-load-producer",
      PluginKind::kSource,
      0,
      "What a request of ours in flight counts as load. Made by itself.",
      "requests from the pick to their end; uncached prompt tokens, with addEstimatedOutputTokens "
      "also min(outputRatio x prompt tokens or the expected output, maxEstimatedOutputTokens), "
      "from the pick to the first token",
      {{"addEstimatedOutputTokens", ParameterKind::kBoolean, "false", 0, 0, "",
        "Count output tokens too."},
       {"outputRatio", ParameterKind::kNumber, "1.5", 0, 1000, "",
        "Output tokens for each of the prompt, where the request expects none itself."},
       {"maxEstimatedOutputTokens", ParameterKind::kInteger, "0", 0, 1e9, "",
        "Most output tokens that count; 0: no limit."}},
      [](Parameters& parameters) -> std::unique_ptr<Plugin> {
        const bool add = parameters.boolean("addEstimatedOutputTokens");
        const double ratio = parameters.number("outputRatio");
        return std::make_unique<InflightLoadProducer>(
            add ? ratio : 0.0, parameters.integer("maxEstimatedOutputTokens"));
      }};
}

}  // namespace pickd::pick

// context-length-aware: endpoints whose range of prompt lengths fits the request, the narrower the
// better; also a filter when told so.
#include <algorithm>
#include <charconv>
#include <optional>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

struct LengthRange {
  std::uint32_t low;
  std::uint32_t high;
  bool holds(std::uint32_t tokens) const { return tokens >= low && tokens <= high; }
};

// "0-2048"; nothing for anything else.
std::optional<LengthRange> parse_range(const std::string& text) {
  LengthRange range{};
  const char* const end = text.data() + text.size();
  const auto low = std::from_chars(text.data(), end, range.low);
  if (low.ec != std::errc() || low.ptr == end || *low.ptr != '-') return std::nullopt;
  const auto high = std::from_chars(low.ptr + 1, end, range.high);
  if (high.ec != std::errc() || high.ptr != end || range.high < range.low) return std::nullopt;
  return range;
}

float score_of(const LengthRange& range, std::uint32_t tokens) {
  if (!range.holds(tokens)) {
    const std::uint32_t distance = tokens < range.low ? range.low - tokens : tokens - range.high;
    return 0.3F / (1.0F + static_cast<float>(distance) / 1000.0F);
  }
  const auto width = static_cast<float>(range.high - range.low);
  const float headroom = width == 0 ? 0.0F : static_cast<float>(range.high - tokens) / width;
  return 0.3F + 0.7F * (0.7F / (1.0F + width / 10'000.0F) + 0.3F * headroom);
}

class ContextLengthAware final : public Scorer, public Filter {
 public:
  ContextLengthAware(std::string label, bool filters)
      : label_(std::move(label)), filters_(filters) {}

  bool filters() const override { return filters_; }

  bool score(const PickContext& context, std::span<float> scores) const override {
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const auto range = range_of(*context.candidates.endpoints()[at]);
      scores[at] = range ? score_of(*range, context.request.prompt_tokens) : 0.5F;
    }
    return true;
  }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    for (std::size_t at = 0; at < keep.size(); ++at) {
      const auto range = range_of(*context.candidates.endpoints()[at]);
      keep[at] = !range || range->holds(context.request.prompt_tokens);
    }
  }

 private:
  std::optional<LengthRange> range_of(const endpoints::TopologyEndpoint& endpoint) const {
    const std::string* label = endpoint.label(label_);
    return label == nullptr ? std::nullopt : parse_range(*label);
  }

  std::string label_;
  bool filters_;
};

}  // namespace

PluginInfo describe_context_length_aware() {
  return {"context-length-aware",
          PluginKind::kScorer,
          0,
          "Prefers endpoints that are meant for prompts of this length, by a label `MIN-MAX` in "
          "tokens.",
          "in range 0.3 + 0.7 (0.7 / (1 + width / 10000) + 0.3 (max - tokens) / width); outside "
          "0.3 / (1 + distance / 1000); 0.5 without a label",
          {{"label", ParameterKind::kText, "llm-d.ai/context-length-range", 1, 255, "",
            "The label that holds the range."},
           {"enableFiltering", ParameterKind::kBoolean, "false", 0, 0, "",
            "Also drop endpoints whose range does not hold the prompt."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            std::string label = parameters.text("label");
            return std::make_unique<ContextLengthAware>(std::move(label),
                                                        parameters.boolean("enableFiltering"));
          }};
}

}  // namespace pickd::pick

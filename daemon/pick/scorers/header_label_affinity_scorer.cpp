// header-label-affinity-scorer: endpoints whose label is what a header of the request says.
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class HeaderLabelAffinityScorer final : public Scorer {
 public:
  HeaderLabelAffinityScorer(std::string header, std::string label)
      : header_(std::move(header)), label_(std::move(label)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const std::string_view* wanted = context.request.attribute(header_);
    if (wanted == nullptr || wanted->empty()) return true;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const std::string* label = context.candidates.endpoints()[at]->label(label_);
      scores[at] = label != nullptr && *label == *wanted ? 1.0F : 0.0F;
    }
    return true;
  }

 private:
  std::string header_;
  std::string label_;
};

}  // namespace

PluginInfo describe_header_label_affinity_scorer() {
  return {"header-label-affinity-scorer",
          PluginKind::kScorer,
          0,
          "Prefers endpoints whose label is what a header of the request says.",
          "1 equal, else 0; nothing for a request without the header",
          {{"headerName", ParameterKind::kText, "", 1, 255, "", "The request attribute.", true},
           {"labelKey", ParameterKind::kText, "", 1, 255, "", "The endpoint's label.", true},
           {"stampResponseHeader", ParameterKind::kBoolean, "true", 0, 0, "",
            "Taken without effect: the gateway writes the response."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            std::string header = parameters.text("headerName");
            return std::make_unique<HeaderLabelAffinityScorer>(std::move(header),
                                                               parameters.text("labelKey"));
          }};
}

}  // namespace pickd::pick

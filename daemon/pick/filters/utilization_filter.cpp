// utilization-filter: drops endpoints above any of several caps. What is unknown is not above.
#include <algorithm>

#include "daemon/config/values.hpp"
#include "daemon/pick/measure.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

struct Cap {
  Measure measure;
  float most;
};

class UtilizationFilter final : public Filter {
 public:
  UtilizationFilter(std::vector<Cap> caps, bool fall_back)
      : caps_(std::move(caps)), fall_back_(fall_back) {}

  ColumnSet columns(ColumnSet) const override {
    ColumnSet read = 0;
    for (const Cap& cap : caps_) read |= cap.measure.columns();
    return read;
  }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    bool anybody = false;
    for (std::size_t at = 0; at < keep.size(); ++at) {
      keep[at] = std::none_of(caps_.begin(), caps_.end(), [&](const Cap& cap) {
        return cap.measure.of(context.candidates, at) > cap.most;
      });
      anybody |= keep[at] != 0;
    }
    if (!anybody && fall_back_) std::fill(keep.begin(), keep.end(), std::uint8_t{1});
  }

 private:
  std::vector<Cap> caps_;
  bool fall_back_;
};

bool read_cap(const config::Node& item, std::vector<Cap>& caps, std::string* wrong) {
  const config::Node* metric = item.find("metric");
  const config::Node* most = item.find("maxValue");
  if (metric == nullptr || !metric->is_scalar() || most == nullptr || !most->is_scalar() ||
      item.entries.size() != 2) {
    *wrong = "each entry has `metric` and `maxValue`, and nothing else";
    return false;
  }
  auto measure = Measure::named(metric->scalar);
  if (!measure) {
    *wrong = "no such metric, " + config::shown(metric->scalar) +
             "; known: " + std::string(Measure::kNames);
    return false;
  }
  const double high = metric->scalar == "kv-cache-utilization" ? 1.0 : 1e12;
  const auto value = config::parse_number(most->scalar, 0.0, high);
  if (!value) {
    *wrong = "maxValue of " + metric->scalar + " " + value.error().text;
    return false;
  }
  caps.push_back({std::move(*measure), static_cast<float>(value.value())});
  return true;
}

std::unique_ptr<Plugin> make(Parameters& parameters) {
  std::vector<Cap> caps;
  const config::Tree list = parameters.tree("conditions");
  if (list != nullptr && !list->is_list()) parameters.refuse("conditions", "must be a list");
  if (list != nullptr && list->is_list()) {
    for (const config::Tree& item : list->items) {
      std::string wrong;
      if (!read_cap(*item, caps, &wrong)) parameters.refuse("conditions", wrong);
    }
    if (list->items.empty()) parameters.refuse("conditions", "must have an entry");
  }
  return std::make_unique<UtilizationFilter>(std::move(caps),
                                             parameters.boolean("fallbackOnEmpty"));
}

}  // namespace

PluginInfo describe_utilization_filter() {
  return {"utilization-filter",
          PluginKind::kFilter,
          Measure::kColumns,
          "Drops endpoints that are above a cap; what is unknown is not above.",
          "kept: every condition's metric <= maxValue",
          {{"conditions", ParameterKind::kTree, "", 0, 0, "",
            "List of {metric, maxValue}; metric is active-requests, active-tokens, "
            "running-requests, waiting-queue, kv-cache-utilization (0 to 1) or label:KEY.",
            true},
           {"fallbackOnEmpty", ParameterKind::kBoolean, "false", 0, 0, "",
            "Keep everybody when nobody would be left."},
           {"inFlightLoadProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one count of its own requests."}},
          make};
}

}  // namespace pickd::pick

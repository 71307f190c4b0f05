#include "daemon/pick/measure.hpp"

#include <algorithm>
#include <charconv>

namespace pickd::pick {

namespace {

constexpr std::string_view kLabelPrefix = "label:";

struct Name {
  std::string_view name;
  Column column;
};
constexpr Name kNamed[] = {
    {"active-requests", Column::kInflightRequests}, {"active-tokens", Column::kInflightTokens},
    {"running-requests", Column::kRunning},         {"RunningRequestsSize", Column::kRunning},
    {"num_requests_running", Column::kRunning},     {"waiting-queue", Column::kWaiting},
    {"WaitingQueueSize", Column::kWaiting},         {"num_requests_waiting", Column::kWaiting},
    {"kv-cache-utilization", Column::kKvUse},       {"KVCacheUsagePercent", Column::kKvUse},
    {"kv_cache_usage_perc", Column::kKvUse},
};

}  // namespace

std::optional<Measure> Measure::named(std::string_view name) {
  Measure made;
  if (name.starts_with(kLabelPrefix) && name.size() > kLabelPrefix.size()) {
    made.label_ = name.substr(kLabelPrefix.size());
    return made;
  }
  const auto* const at = std::find_if(std::begin(kNamed), std::end(kNamed),
                                      [name](const Name& known) { return known.name == name; });
  if (at == std::end(kNamed)) return std::nullopt;
  made.column_ = at->column;
  return made;
}

float Measure::of(const Candidates& candidates, std::size_t at) const {
  if (label_.empty()) return candidates.column(column_)[at];
  const std::string* label = candidates.endpoints()[at]->label(label_);
  if (label == nullptr) return kUnknown;
  float value = kUnknown;
  const auto [end, error] = std::from_chars(label->data(), label->data() + label->size(), value);
  return error == std::errc() && end == label->data() + label->size() ? value : kUnknown;
}

}  // namespace pickd::pick

#include "daemon/pick/profile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/pick/parameters.hpp"
#include "daemon/pick/session_ttl.hpp"

namespace pickd::pick {

namespace {

// Sums must be finite as the float of a result too. A power of two keeps their order and their
// ratios; weights that cannot overflow stay as they are.
void scale_down(std::vector<Profile::WeightedScorer>& scorers) {
  constexpr double kShare = 0x1p-10;  // so that this sum cannot overflow: 128 plugins at most
  constexpr double kMost = static_cast<double>(std::numeric_limits<float>::max()) * kShare;
  constexpr int kLargestExponent = 100;  // leaves room for 128 of them in a float
  double sum = 0;
  double largest = 0;
  for (const auto& [scorer, weight] : scorers) {
    sum += std::abs(weight) * kShare;
    largest = std::max(largest, std::abs(weight));
  }
  if (sum < kMost) return;
  const int shift = kLargestExponent - std::ilogb(largest);
  for (auto& [scorer, weight] : scorers) weight = std::ldexp(weight, shift);
}

}  // namespace

void Profile::use(const PluginInstance& instance, const std::string& name, double weight) {
  Plugin& plugin = *instance.plugin;
  plugins_.push_back(instance.plugin);
  const ColumnSet columns = plugin.columns(instance.info->columns);
  columns_ |= columns;
  if (const auto* filter = dynamic_cast<const Filter*>(&plugin);
      filter != nullptr && filter->filters()) {
    filters_.push_back(filter);
    filter_names_.push_back(name);
    filter_columns_ |= columns;
  }
  if (const auto* scorer = dynamic_cast<const Scorer*>(&plugin); scorer != nullptr) {
    scorers_.push_back({scorer, weight});
    scorer_names_.push_back(name);
  }
  if (auto* picker = dynamic_cast<Picker*>(&plugin); picker != nullptr) picker_ = picker;
  if (auto* memory = dynamic_cast<PickMemory*>(&plugin); memory != nullptr) {
    if (std::find(memories_.begin(), memories_.end(), memory) == memories_.end())
      memories_.push_back(memory);
  }
  if (const auto* session = dynamic_cast<const SessionTtl*>(&plugin); session != nullptr) {
    session_ttl_ms_ = std::max(session_ttl_ms_, session->session_ttl_ms());
    if (session_header_.empty()) session_header_ = session->session_header();
  }
}

std::unique_ptr<const Profile> Profile::make(const config::ProfileConfig& profile,
                                             const PluginInstances& instances,
                                             config::Errors& errors) {
  const std::size_t errors_before = errors.count();
  std::unique_ptr<Profile> made(new Profile());
  made->name_ = profile.name;
  for (const config::PluginUse& use : profile.plugins) {
    const auto at = instances.find(use.plugin_ref);
    if (at == instances.end()) continue;
    const PluginInfo& info = *at->second.info;
    if (!stands_in_profiles(info.kind)) {
      if (profile.implied) continue;
      errors.add(use.place, "pluginRef",
                 config::shown(use.plugin_ref) + " is a " + kind_name(info.kind) +
                     ": it works by standing under `plugins`; remove it from the profile");
      continue;
    }
    if (info.kind == PluginKind::kPicker && made->picker_ != nullptr) {
      errors.add(use.place, "pluginRef", "a profile has one picker, this is a second");
      continue;
    }
    made->use(at->second, use.plugin_ref, use.weight.value_or(1.0));
  }
  if (made->picker_ == nullptr) {  // as in the Endpoint Picker: the default picker is added
    const config::PluginConfig fallback{"max-score-picker", "max-score-picker", nullptr, {}};
    const PluginInfo* info = find_plugin(fallback.type);
    Parameters parameters(*info, fallback, errors);
    made->use({info, info->make(parameters)}, fallback.name, 1.0);
  }
  scale_down(made->scorers_);
  if (errors.count() != errors_before) return nullptr;
  return made;
}

}  // namespace pickd::pick

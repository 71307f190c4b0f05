// sglang-cache-aware: the longest match when it is long enough and nobody is far behind in load;
// else the least loaded. Load is our own requests in flight, counted at the pick; the smallest tree
// that older versions took on a miss, and that drew everything, is not copied.
// Source: github.com/sgl-project/sglang, model gateway, policy cache_aware (thresholds of its
// command line).
#include <algorithm>

#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

config::SchedulingConfig make_sglang_cache_aware_policy();

namespace {

class SglangCacheAwareFilter final : public Filter {
 public:
  SglangCacheAwareFilter(double cache, double absolute, double relative)
      : cache_(static_cast<float>(cache)),
        absolute_(static_cast<float>(absolute)),
        relative_(static_cast<float>(relative)) {}

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    const auto load = context.candidates.column(Column::kInflightRequests);
    const auto matches = context.candidates.column(Column::kMatchBlocks);
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    if (*most - *least > absolute_ && *most > relative_ * *least) return;
    const float best = *std::max_element(matches.begin(), matches.end());
    const auto total = static_cast<float>(context.request.keys.size());
    if (total == 0 || best / total <= cache_) return;
    std::transform(matches.begin(), matches.end(), keep.begin(), [best](float match) {
      return match == best ? std::uint8_t{1} : std::uint8_t{0};
    });
  }

 private:
  float cache_;
  float absolute_;
  float relative_;
};

}  // namespace

PluginInfo describe_sglang_cache_aware_filter() {
  return {"sglang-cache-aware-filter",
          PluginKind::kFilter,
          columns_of(Column::kMatchBlocks, Column::kInflightRequests),
          "Of the policy sglang-cache-aware: keeps the longest match, unless it is short or loads "
          "are uneven.",
          "everybody when max - min > balanceAbsThreshold and max > balanceRelThreshold x min of "
          "requests in flight, or the longest match / total blocks <= cacheThreshold; else those "
          "with the longest match",
          {{"cacheThreshold", ParameterKind::kNumber, "0.3", 0, 1, "",
            "Share of the prompt from which a match counts."},
           {"balanceAbsThreshold", ParameterKind::kNumber, "64", 0, 1e9, "",
            "Difference in requests from which loads are uneven."},
           {"balanceRelThreshold", ParameterKind::kNumber, "1.5", 0, 1e9, "", "And their ratio."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const double cache = parameters.number("cacheThreshold");
            const double absolute = parameters.number("balanceAbsThreshold");
            return std::make_unique<SglangCacheAwareFilter>(
                cache, absolute, parameters.number("balanceRelThreshold"));
          }};
}

config::SchedulingConfig make_sglang_cache_aware_policy() {
  static constexpr PluginWeight kPlugins[] = {
      {"sglang-cache-aware-filter", 1}, {"active-request-scorer", 1}, {"max-score-picker", 1}};
  return make_scheduling("sglang-cache-aware", kPlugins);
}

}  // namespace pickd::pick

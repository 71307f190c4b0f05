// weighted-random-picker: candidates drawn without replacement, each as likely as its sum is of all
// (A-Res: the greatest U^(1/sum) wins; here its logarithm, log(U) / sum, which orders the same).
#include <algorithm>
#include <cmath>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class WeightedRandomPicker final : public Picker {
 public:
  explicit WeightedRandomPicker(std::uint64_t endpoints_max)
      : endpoints_max_(static_cast<std::uint32_t>(endpoints_max)) {}

  void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
            Ranking& ranking) override {
    struct Entry {
      bool weighted;  // before all that have no weight
      double key;
      std::uint16_t index;
    };
    const auto before = [](const Entry& a, const Entry& b) {
      return a.weighted != b.weighted ? a.weighted : a.key > b.key;
    };
    Entry best[abi::kResultEndpointsMax + 1];
    std::uint32_t count = 0;
    // Of sums near the least double the keys would all be minus infinity, and the first would win.
    constexpr double kTiny = 1e-250;
    double most = 0;
    for (const double sum : sums) most = std::max(most, sum);
    const double scale = most < kTiny ? 0x1p600 : 1.0;
    wanted =
        std::min({wanted, endpoints_max_, static_cast<std::uint32_t>(abi::kResultEndpointsMax)});
    for (std::size_t at = 0; at < sums.size(); ++at) {
      // (0, 1]: its logarithm is finite.
      const double uniform = (static_cast<double>(context.random.next() >> 11) + 1.0) * 0x1.0p-53;
      const bool weighted = sums[at] > 0;
      const Entry entry{weighted, std::log(uniform) / (weighted ? sums[at] * scale : 1.0),
                        static_cast<std::uint16_t>(at)};
      std::uint32_t place = count;
      while (place != 0 && before(entry, best[place - 1])) {
        best[place] = best[place - 1];
        --place;
      }
      best[place] = entry;
      count = std::min(count + 1, wanted);
    }
    ranking.count = count;
    ranking.ties = 0;
    for (std::uint32_t place = 0; place < count; ++place) ranking.order[place] = best[place].index;
  }

 private:
  std::uint32_t endpoints_max_;
};

}  // namespace

PluginInfo describe_weighted_random_picker() {
  return {"weighted-random-picker",
          PluginKind::kPicker,
          0,
          "Draws candidates as likely as their sums are of all; those without a positive sum only "
          "after the others, and alike among themselves.",
          "the greatest U^(1/sum) wins (A-Res)",
          {{"maxNumOfEndpoints", ParameterKind::kInteger, "8", 1, abi::kResultEndpointsMax, "",
            "Endpoints that a result lists at most, the winner first."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<WeightedRandomPicker>(parameters.integer("maxNumOfEndpoints"));
          }};
}

}  // namespace pickd::pick

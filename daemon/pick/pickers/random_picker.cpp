// random-picker: any candidate, all as likely, whatever the scores.
#include <algorithm>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class RandomPicker final : public Picker {
 public:
  explicit RandomPicker(std::uint64_t endpoints_max)
      : endpoints_max_(static_cast<std::uint32_t>(endpoints_max)) {}

  void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
            Ranking& ranking) override {
    const auto total = static_cast<std::uint32_t>(sums.size());
    ranking.count = std::min({wanted, endpoints_max_, total});
    ranking.ties = 0;
    // Draws without replacement: a draw among what is left counts over those already taken, which
    // are kept in order of index.
    std::uint16_t taken[abi::kResultEndpointsMax];
    for (std::uint32_t place = 0; place < ranking.count; ++place) {
      auto drawn = static_cast<std::uint16_t>(context.random.below(total - place));
      std::uint32_t before = 0;
      while (before < place && drawn >= taken[before]) {
        ++drawn;
        ++before;
      }
      std::copy_backward(taken + before, taken + place, taken + place + 1);
      taken[before] = drawn;
      ranking.order[place] = drawn;
    }
  }

 private:
  std::uint32_t endpoints_max_;
};

}  // namespace

PluginInfo describe_random_picker() {
  return {"random-picker",
          PluginKind::kPicker,
          0,
          "Takes any candidate, all as likely, whatever the scores.",
          "",
          {{"maxNumOfEndpoints", ParameterKind::kInteger, "8", 1, abi::kResultEndpointsMax, "",
            "Endpoints that a result lists at most, the winner first."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<RandomPicker>(parameters.integer("maxNumOfEndpoints"));
          }};
}

}  // namespace pickd::pick

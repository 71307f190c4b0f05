// max-score-picker: the highest sums, in order. Candidates of equal sum are drawn at random, each
// tie group by itself: every member of a group is equally likely at each of its places.
#include <algorithm>
#include <bit>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class MaxScorePicker final : public Picker {
 public:
  explicit MaxScorePicker(std::uint64_t endpoints_max)
      : endpoints_max_(static_cast<std::uint32_t>(endpoints_max)) {}

  void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
            Ranking& ranking) override {
    wanted =
        std::min({wanted, endpoints_max_, static_cast<std::uint32_t>(abi::kResultEndpointsMax)});
    Entry best[abi::kResultEndpointsMax] = {};  // sorted; an empty place is below every entry
    std::uint64_t highest = 0;
    std::uint32_t ties = 0;
    for (std::size_t at = 0; at < sums.size(); ++at) {
      const std::uint64_t sum = in_order(sums[at]);
      ties = sum > highest ? 1 : ties + (sum == highest ? 1 : 0);
      highest = std::max(highest, sum);
      if (sum < static_cast<std::uint64_t>(best[wanted - 1] >> 64)) continue;
      insert(make_entry(sum, context.random.next(), at), best);
    }
    ranking.count = std::min(wanted, static_cast<std::uint32_t>(sums.size()));
    ranking.ties = ties;
    for (std::uint32_t place = 0; place < ranking.count; ++place) {
      ranking.order[place] = static_cast<std::uint16_t>(best[place]);
    }
  }

 private:
  // [ sum, in order : 64 ][ a fresh random number: who is higher among equals : 48 ][ index : 16 ]
  // One integer, so that an insertion is moves without branches: which way they go is not to be
  // foreseen, and a mispredicted branch costs more than all the moves.
  using Entry = unsigned __int128;
  static Entry make_entry(std::uint64_t sum, std::uint64_t draw, std::size_t index) {
    return (Entry{sum} << 64) | (draw & ~std::uint64_t{0xFFFF}) | index;
  }
  // An integer that compares as the number does; 0 and -0 are one number.
  static std::uint64_t in_order(double sum) {
    const auto bits = std::bit_cast<std::int64_t>(sum + 0.0);
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    return static_cast<std::uint64_t>(bits) ^ (static_cast<std::uint64_t>(bits >> 63) | kSign);
  }
  static void insert(Entry entry, Entry (&best)[abi::kResultEndpointsMax]) {
#pragma GCC unroll 8
    for (Entry& place : best) {
      const Entry was = place;
      const bool higher = entry > was;
      place = higher ? entry : was;
      entry = higher ? was : entry;
    }
  }

  std::uint32_t endpoints_max_;
};

}  // namespace

PluginInfo describe_max_score_picker() {
  return {"max-score-picker",
          PluginKind::kPicker,
          0,
          "Takes the highest sum; ties are drawn without bias, each tie group by itself.",
          "",
          // The Endpoint Picker's default is 1; here the request says how many it wants.
          {{"maxNumOfEndpoints", ParameterKind::kInteger, "8", 1, abi::kResultEndpointsMax, "",
            "Endpoints that a result lists at most, the winner first."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<MaxScorePicker>(parameters.integer("maxNumOfEndpoints"));
          }};
}

}  // namespace pickd::pick

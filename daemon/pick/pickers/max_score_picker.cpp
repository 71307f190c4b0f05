// max-score-picker: the highest sums, in order. Candidates of equal sum are drawn at random, each
// tie group by itself: every member of a group is equally likely at each of its places.
#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

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
    ranking.count = std::min(wanted, static_cast<std::uint32_t>(sums.size()));
    const Peaks peaks = peaks_of(sums);
    const double highest = peaks.highest;
    const std::uint32_t ties = count_of(highest, sums);
    ranking.ties = std::max<std::uint32_t>(ties, 1);
    // Often so in an idle fleet, and then nothing has to be put in order.
    if (ties >= ranking.count && ties > 1) {
      draw_among(highest, ties, sums, context.random, ranking);
    } else {
      put_in_order(peaks.at_least, sums, context.random, wanted, ranking);
    }
  }

 private:
  struct Peaks {
    double highest;
    double at_least;  // so much or more have as many sums as a result lists
  };
  // In as many lanes as a result has places: each has its highest sum, and the lowest of these is a
  // bound that few sums reach.
  static Peaks peaks_of(std::span<const double> sums) {
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    constexpr std::size_t kLanes = abi::kResultEndpointsMax;
    double lanes[kLanes];
    std::fill(std::begin(lanes), std::end(lanes), kLowest);
    std::size_t at = 0;
    for (; at + kLanes <= sums.size(); at += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] = sums[at + lane] > lanes[lane] ? sums[at + lane] : lanes[lane];
    }
    for (std::size_t lane = 0; at < sums.size(); ++at, ++lane)
      lanes[lane] = sums[at] > lanes[lane] ? sums[at] : lanes[lane];
    const auto [least, most] = std::minmax_element(std::begin(lanes), std::end(lanes));
    return {*most, *least};
  }

  static std::uint32_t count_of(double value, std::span<const double> sums) {
    std::uint64_t count = 0;
    for (const double sum : sums) count += sum == value ? 1U : 0U;
    return static_cast<std::uint32_t>(count);
  }

  // All places go to candidates of the highest sum, `ties` of them: numbers of theirs are drawn
  // without putting one back, then those are looked for.
  static void draw_among(double highest, std::uint32_t ties, std::span<const double> sums,
                         base::Random& random, Ranking& ranking) {
    struct Drawn {
      std::uint32_t number;  // among the equals
      std::uint32_t place;
    };
    Drawn drawn[abi::kResultEndpointsMax];  // in order of the numbers
    for (std::uint32_t place = 0; place < ranking.count; ++place) {
      // The n-th of those not drawn yet.
      std::uint32_t number = random.below(ties - place);
      std::uint32_t before = 0;
      while (before < place && number >= drawn[before].number) {
        ++before;
        ++number;
      }
      std::copy_backward(drawn + before, drawn + place, drawn + place + 1);
      drawn[before] = {number, place};
    }
    std::uint32_t found = 0;
    std::uint32_t number = 0;
    for (std::size_t at = 0; found < ranking.count; ++at) {
      if (sums[at] != highest) continue;
      if (number == drawn[found].number)
        ranking.order[drawn[found++].place] = static_cast<std::uint16_t>(at);
      ++number;
    }
  }

  static void put_in_order(double at_least, std::span<const double> sums, base::Random& random,
                           std::uint32_t wanted, Ranking& ranking) {
    Entry best[abi::kResultEndpointsMax] = {};  // sorted; an empty place is below every entry
    for (std::size_t at = 0; at < sums.size(); ++at) {
      if (sums[at] < at_least) continue;
      const std::uint64_t sum = in_order(sums[at]);
      if (sum < static_cast<std::uint64_t>(best[wanted - 1] >> 64)) continue;
      const Entry entry = make_entry(sum, random.next(), at);
      if (entry > best[wanted - 1]) insert(entry, best);
    }
    for (std::uint32_t place = 0; place < ranking.count; ++place)
      ranking.order[place] = static_cast<std::uint16_t>(best[place]);
  }

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

// max-score-picker: the highest sums, in order. Candidates of equal sum are drawn at random, each
// tie group by itself: every member of a group is equally likely at each of its places.
#include <algorithm>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

class MaxScorePicker final : public Picker {
 public:
  explicit MaxScorePicker(std::uint64_t endpoints_max)
      : endpoints_max_(static_cast<std::uint32_t>(endpoints_max)) {}

  void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
            Ranking& ranking) override {
    struct Entry {
      double sum;
      std::uint64_t draw;  // a fresh random number each: who is higher among equals
      std::uint16_t index;
    };
    const auto before = [](const Entry& a, const Entry& b) {
      return a.sum > b.sum || (a.sum == b.sum && a.draw > b.draw);
    };
    // `best` stays sorted; one slot more than is kept, for the insertion.
    Entry best[abi::kResultEndpointsMax + 1];
    std::uint32_t count = 0;
    std::uint32_t ties = 0;
    wanted =
        std::min({wanted, endpoints_max_, static_cast<std::uint32_t>(abi::kResultEndpointsMax)});
    for (std::size_t at = 0; at < sums.size(); ++at) {
      if (count != 0 && sums[at] == best[0].sum) ++ties;
      if (count == 0 || sums[at] > best[0].sum) ties = 1;
      if (count == wanted && sums[at] < best[count - 1].sum) continue;
      const Entry entry{sums[at], context.random.next(), static_cast<std::uint16_t>(at)};
      std::uint32_t place = count;
      while (place != 0 && before(entry, best[place - 1])) {
        best[place] = best[place - 1];
        --place;
      }
      best[place] = entry;
      count = std::min(count + 1, wanted);
    }
    ranking.count = count;
    ranking.ties = ties;
    for (std::uint32_t place = 0; place < count; ++place) ranking.order[place] = best[place].index;
  }

 private:
  std::uint32_t endpoints_max_;
};

}  // namespace

std::unique_ptr<Plugin> make_max_score_picker(config::ParameterReader& parameters) {
  // The Endpoint Picker's default is 1; here the request says how many it wants, and this caps it.
  return std::make_unique<MaxScorePicker>(parameters.integer(
      "maxNumOfEndpoints", abi::kResultEndpointsMax, 1, abi::kResultEndpointsMax));
}

}  // namespace pickd::pick

// round-robin-picker: whoever was picked longest ago. Each endpoint keeps the number of its last
// turn, so the rotation stays fair when candidates come and go; a counter folded by their number
// does not.
#include <algorithm>
#include <atomic>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class RoundRobinPicker final : public Picker {
 public:
  void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
            Ranking& ranking) override {
    const std::uint16_t* ids = context.candidates.ids();
    while (true) {
      std::uint64_t seen = order(ids, sums.size(), wanted, ranking);
      ranking.ties = 0;
      if (context.request.dry_run) return;
      // Takes the turn; partner: the same in other workers. Who loses looks again.
      std::atomic<std::uint64_t>& turn = turns_[ids[ranking.order[0]]];
      const std::uint64_t next = next_turn_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (turn.compare_exchange_strong(seen, next, std::memory_order_relaxed)) return;
    }
  }

 private:
  // Ranks by last turn; returns the last turn of the first.
  std::uint64_t order(const std::uint16_t* ids, std::size_t count, std::uint32_t wanted,
                      Ranking& ranking) const;

  std::atomic<std::uint64_t> next_turn_{0};
  std::atomic<std::uint64_t> turns_[Candidates::kMax] = {};
};

std::uint64_t RoundRobinPicker::order(const std::uint16_t* ids, std::size_t count,
                                      std::uint32_t wanted, Ranking& ranking) const {
  std::uint64_t turns[abi::kResultEndpointsMax] = {};
  wanted = std::min(wanted, static_cast<std::uint32_t>(abi::kResultEndpointsMax));
  std::uint32_t kept = 0;
  for (std::size_t at = 0; at < count; ++at) {
    const std::uint64_t turn = turns_[ids[at]].load(std::memory_order_relaxed);
    std::uint32_t place = kept;
    if (place == wanted && turn >= turns[place - 1]) continue;
    if (place == wanted) --place;
    while (place != 0 && turn < turns[place - 1]) {
      turns[place] = turns[place - 1];
      ranking.order[place] = ranking.order[place - 1];
      --place;
    }
    turns[place] = turn;
    ranking.order[place] = static_cast<std::uint16_t>(at);
    kept = std::min(kept + 1, wanted);
  }
  ranking.count = kept;
  return turns[0];
}

}  // namespace

PluginInfo describe_round_robin_picker() {
  return {
      "round-robin-picker",
      PluginKind::kPicker,
      0,
      "Takes the candidate that was picked longest ago, whatever the scores.",
      "",
      {},
      [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<RoundRobinPicker>(); }};
}

}  // namespace pickd::pick

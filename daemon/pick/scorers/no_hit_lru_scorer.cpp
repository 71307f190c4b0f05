// no-hit-lru-scorer: prompts that nobody holds go to the endpoint that got such a prompt longest
// ago, so that the caches fill evenly.
#include <algorithm>
#include <array>
#include <atomic>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class NoHitLruScorer final : public Scorer, public PickMemory {
 public:
  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto matches = context.candidates.match_blocks();
    const bool warm = std::any_of(matches.begin(), matches.end(),
                                  [](std::uint32_t blocks) { return blocks != 0; });
    if (warm || scores.size() == 1) {
      std::fill(scores.begin(), scores.end(), warm ? 0.5F : 1.0F);
      return true;
    }
    struct Entry {
      std::uint64_t turn;
      std::uint16_t index;
    };
    Entry entries[Candidates::kMax];
    const std::uint16_t* ids = context.candidates.ids();
    for (std::size_t at = 0; at < scores.size(); ++at) {
      // Partner: remember() of all workers. A turn that is read a moment late ranks by the old one.
      entries[at] = {turns_[ids[at]].load(std::memory_order_relaxed),
                     static_cast<std::uint16_t>(at)};
    }
    std::sort(entries, entries + scores.size(),
              [](const Entry& a, const Entry& b) { return a.turn < b.turn; });
    const auto last = static_cast<float>(scores.size() - 1);
    for (std::size_t rank = 0; rank < scores.size(); ++rank) {
      // Those that had no turn yet are equal.
      scores[entries[rank].index] =
          entries[rank].turn == 0 ? 1.0F : 1.0F - static_cast<float>(rank) / last;
    }
    return true;
  }

  void remember(const PickRequest&, std::uint16_t winner, std::uint32_t match_blocks) override {
    if (match_blocks != 0) return;
    const std::uint64_t turn = next_turn_.fetch_add(1, std::memory_order_relaxed) + 1;
    turns_[winner].store(turn, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> next_turn_{0};
  std::array<std::atomic<std::uint64_t>, Candidates::kMax> turns_{};
};

}  // namespace

PluginInfo describe_no_hit_lru_scorer() {
  return {
      "no-hit-lru-scorer",
      PluginKind::kScorer,
      columns_of(Column::kMatchBlocks),
      "Spreads prompts that nobody holds: to the endpoint that got one longest ago.",
      "of N candidates, when none holds a block: 1 - rank / (N - 1), the least recent first, 1 "
      "for those that had none yet; else 0.5 for all",
      {{"lruSize", ParameterKind::kInteger, "1024", 1, 1e6, "",
        "Taken without effect: every endpoint has its place."},
       {"prefixPluginType", ParameterKind::kText, "prefix-cache-scorer", 0, 127, "",
        "Taken; pickd has one prefix table."},
       {"prefixPluginName", ParameterKind::kText, "prefix-cache-scorer", 0, 127, "",
        "Taken; pickd has one prefix table."},
       {"prefixMatchInfoProducerName", ParameterKind::kReference, "", 0, 0, "",
        "Taken; pickd has one prefix table."}},
      [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<NoHitLruScorer>(); }};
}

}  // namespace pickd::pick

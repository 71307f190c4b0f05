// PickFigures: what one worker's picks were like, for metrics: how long they took, how much of the
// prompt was cached, whom they went to and why.
//
// Its worker adds, with plain loads and stores of relaxed words; any thread reads sums that may lag
// by the pick under way. In the daemon's own memory: no client sees it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "abi/channel_layout.hpp"
#include "abi/limits.hpp"
#include "daemon/base/histogram.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/result.hpp"

namespace pickd::workers {

inline constexpr std::array<std::uint64_t, 14> kPickNsBounds = {
    250,    500,    1'000,   2'000,   4'000,     8'000,     16'000,
    32'000, 64'000, 128'000, 256'000, 1'000'000, 4'000'000, 16'000'000};
inline constexpr base::HistogramShape kPickSecondsShape{kPickNsBounds, 1e-9};

// Shares in thousandths.
inline constexpr std::array<std::uint64_t, 10> kMatchBounds = {0,   100, 250, 500, 700,
                                                               800, 900, 950, 990, 1000};
inline constexpr base::HistogramShape kMatchShape{kMatchBounds, 1e-3};

inline constexpr std::size_t kReasons = static_cast<std::size_t>(abi::Reason::kUnpredicted) + 1;

// Of the picks of one endpoint and generation.
struct EndpointPicks {
  std::uint64_t picks = 0;
  std::uint64_t prompt_blocks = 0;
  std::uint64_t match_blocks = 0;
};

class PickFigures {
 public:
  PickFigures() : endpoints_(std::make_unique<Endpoint[]>(abi::kEndpointIdsMax)) {}

  // -- its worker ------------------------------------------------------------------------------
  // A pick was answered with an endpoint.
  void picked(const pick::PickResult& result) {
    const pick::PickedEndpoint& winner = result.endpoints[0];
    bump(reasons_[static_cast<std::size_t>(result.reason)], 1);
    Endpoint& endpoint = endpoints_[winner.endpoint->id];
    if (endpoint.generation.load(kRelaxed) != winner.generation)
      forget(endpoint, winner.generation);
    bump(endpoint.picks, 1);
    const std::uint64_t blocks = result.keys.size();
    if (blocks == 0) return;
    bump(endpoint.prompt_blocks, blocks);
    bump(endpoint.match_blocks, winner.match_blocks);
    match_.add(winner.match_blocks * 1000 / blocks);
  }
  void took(std::uint64_t ns) { pick_ns_.add(ns); }

  // -- any thread ------------------------------------------------------------------------------
  base::HistogramCounts pick_seconds() const { return pick_ns_.counts(kPickSecondsShape); }
  base::HistogramCounts match_share() const { return match_.counts(kMatchShape); }
  std::uint64_t picks_by(abi::Reason reason) const {
    return reasons_[static_cast<std::size_t>(reason)].load(kRelaxed);
  }
  // Nothing when its picks so far were of another generation.
  EndpointPicks of(std::uint32_t id, std::uint32_t generation) const {
    const Endpoint& endpoint = endpoints_[id];
    if (endpoint.generation.load(std::memory_order_acquire) != generation) return {};
    return {endpoint.picks.load(kRelaxed), endpoint.prompt_blocks.load(kRelaxed),
            endpoint.match_blocks.load(kRelaxed)};
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  struct Endpoint {
    std::atomic<std::uint32_t> generation{0};  // no endpoint has 0
    Word picks{0};
    Word prompt_blocks{0};
    Word match_blocks{0};
  };

  // One writer, so no read-modify-write.
  static void bump(Word& word, std::uint64_t by) { word.store(word.load(kRelaxed) + by, kRelaxed); }
  static void forget(Endpoint& endpoint, std::uint32_t generation) {
    endpoint.picks.store(0, kRelaxed);
    endpoint.prompt_blocks.store(0, kRelaxed);
    endpoint.match_blocks.store(0, kRelaxed);
    // Last. Release; partner: the acquire of of(), which so never sees another engine's counts.
    endpoint.generation.store(generation, std::memory_order_release);
  }

  base::Histogram<kPickNsBounds> pick_ns_;
  base::Histogram<kMatchBounds> match_;
  std::array<Word, kReasons> reasons_{};
  std::unique_ptr<Endpoint[]> endpoints_;
};

}  // namespace pickd::workers

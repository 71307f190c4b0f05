// RecentPicks: how many of a client's own latest picks went to each endpoint, and the rule that
// none gets more than its share of them.
//
// Gateways that pick without a daemon do not see each other. If each of them keeps every endpoint
// at twice the mean of its own picks, so do all of them together, whether requests end at once or
// never: load alone does not show that, because a gateway with few requests in flight finds the
// home of a hot prefix idle each time. One thread at a time.
#pragma once

#include <cstdint>

#include "abi/limits.hpp"

namespace pickd::client {

class RecentPicks {
 public:
  // So many go to an endpoint whatever its share is: the first pick must find its prefix, and one
  // more tells nothing yet.
  static constexpr std::uint32_t kAlways = 2;
  // Twice the mean.
  static constexpr std::uint64_t kShare = 2;
  // Of the fleet's endpoints. Older picks fade, so that a prefix which becomes hot late is not
  // owed what its home did not get before.
  static constexpr std::uint64_t kRememberedEach = 16;

  std::uint32_t of(std::uint32_t endpoint) const { return picks_[endpoint]; }

  // Whether one that has had `of_it` may have one more, where `candidates` have had `of_all`.
  static bool has_room(std::uint32_t of_it, std::uint64_t of_all, std::uint32_t candidates) {
    return of_it < kAlways || std::uint64_t{of_it} * candidates <= kShare * of_all;
  }

  // `endpoints` are in the fleet.
  void add(std::uint32_t endpoint, std::uint32_t endpoints) {
    ++picks_[endpoint];
    if (++all_ >= kRememberedEach * endpoints) fade();
  }
  void clear() {
    for (std::uint32_t& picks : picks_) picks = 0;
    all_ = 0;
  }

 private:
  void fade() {
    all_ = 0;
    for (std::uint32_t& picks : picks_) all_ += picks /= 2;
  }

  std::uint32_t picks_[abi::kEndpointIdsMax] = {};
  std::uint64_t all_ = 0;
};

}  // namespace pickd::client

// How long to spin before sleeping: a time that adapts to whether spinning pays. Used on both sides
// of a channel. It knows no clock.
//
// Spinning pays when what is waited for comes while spinning. With other load on the machine the
// peer does not run while this side spins, and every turn is taken from it: each failure halves the
// budget, down to none. That the sleep afterwards was short proves nothing, for it may be the sleep
// that let the peer run. So now and then one wait spins for the whole cap again, to see.
#pragma once

#include <cstdint>

namespace pickd::abi {

class SpinBudget {
 public:
  // `cap_ns` 0: never spin.
  explicit constexpr SpinBudget(std::uint64_t cap_ns = 0) : cap_ns_(cap_ns), ns_(cap_ns) {}

  constexpr std::uint64_t ns() const { return ns_; }
  constexpr std::uint64_t cap_ns() const { return cap_ns_; }

  // What was waited for came while spinning.
  constexpr void paid() {
    failures_ = 0;
    const std::uint64_t least = cap_ns_ / kLeastShare;
    const std::uint64_t more = ns_ < least ? least : 2 * ns_;
    ns_ = more < cap_ns_ ? more : cap_ns_;
  }
  // It did not: the waiter slept.
  constexpr void failed() {
    if (++failures_ == kFailuresPerTrial) {
      failures_ = 0;
      ns_ = cap_ns_;
      return;
    }
    ns_ = ns_ / 2 < cap_ns_ / kLeastShare ? 0 : ns_ / 2;
  }

 private:
  static constexpr std::uint64_t kLeastShare = 32;
  // Trials fall into less than one wait of a hundred, so that they are not what a p99 shows: each
  // is followed by six more spins, of half the time each, when it fails.
  static constexpr std::uint32_t kFailuresPerTrial = 1024;

  std::uint64_t cap_ns_;
  std::uint64_t ns_;
  std::uint32_t failures_ = 0;
};

}  // namespace pickd::abi

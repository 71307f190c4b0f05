// How long to spin before sleeping: a time that adapts to whether spinning pays. Used on both sides
// of a channel. It knows no clock.
//
// Spinning pays when what is waited for comes while spinning. With other load on the machine the
// peer does not run while this side spins, and every turn is taken from it: each failure halves the
// budget, down to none. That the sleep afterwards was short proves nothing, for it may be the sleep
// that let the peer run. So now and then one wait spins for the whole cap again, to see; more and
// more seldom while that fails.
//
// A spinner that loses its core for a scheduler's slice has used up what it was owed: a sleeper
// would have been run at once. So that ends spinning for a long time, whether it paid or not.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pickd::abi {

// The cap where nobody sets one: about one wake of a sleeping thread in a virtual machine. Who
// spins for as long as a wake takes, and then sleeps, waits at most twice as long as the better of
// the two.
inline constexpr std::uint32_t kSpinDefaultUs = 50;

// Two looks at the clock of a spin loop this far apart: another thread, or another virtual machine,
// had the core. Far above an interrupt, below a scheduler's slice.
inline constexpr std::uint64_t kSpinGapNs = 1'000'000;

class SpinBudget {
 public:
  // `cap_ns` 0: never spin.
  explicit constexpr SpinBudget(std::uint64_t cap_ns = 0) : cap_ns_(cap_ns), ns_(cap_ns) {}

  constexpr std::uint64_t ns() const { return ns_; }
  constexpr std::uint64_t cap_ns() const { return cap_ns_; }

  // What was waited for came while spinning.
  constexpr void paid() {
    if (++paid_in_a_row_ == kPaidForTrust) trial_every_ = kTrialEveryMin;
    ns_ = std::min(cap_ns_, std::max(2 * ns_, least()));
  }
  // It did not: the waiter slept.
  constexpr void failed() {
    paid_in_a_row_ = 0;
    if (ns_ != 0) {
      ns_ = ns_ / 2 < least() ? 0 : ns_ / 2;
      if (ns_ == 0) give_up(2 * trial_every_);
    } else if (--waits_to_trial_ == 0) {
      ns_ = cap_ns_;
    }
  }
  // The core was lost while spinning; instead of the other two.
  constexpr void preempted() {
    paid_in_a_row_ = 0;
    ns_ = 0;
    give_up(kTrialEveryMax);
  }

 private:
  static constexpr std::uint64_t kLeastShare = 32;
  // In waits. At the longest, trials and the up to six shorter spins after each are far fewer than
  // one wait of a hundred, and so are the waits that a lost core delays: they are not what a p99
  // shows.
  static constexpr std::uint32_t kTrialEveryMin = 64;
  static constexpr std::uint32_t kTrialEveryMax = 4096;
  static constexpr std::uint32_t kPaidForTrust = 256;

  constexpr std::uint64_t least() const { return cap_ns_ / kLeastShare; }
  constexpr void give_up(std::uint32_t trial_every) {
    trial_every_ = std::min(trial_every, kTrialEveryMax);
    waits_to_trial_ = trial_every_;
  }

  std::uint64_t cap_ns_;
  std::uint64_t ns_;
  std::uint32_t trial_every_ = kTrialEveryMin;
  std::uint32_t waits_to_trial_ = kTrialEveryMin;
  std::uint32_t paid_in_a_row_ = 0;
};

}  // namespace pickd::abi

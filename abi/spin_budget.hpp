// How long to spin before sleeping: a time that adapts to whether spinning pays. Used on both sides
// of a channel. It knows no clock: times are given to it.
//
// Spinning pays when the answer comes before the spinner would have slept and been woken. With
// other load on the machine the peer does not run while this side spins, and every turn is taken
// from it: then the budget shrinks by halves. It never reaches 0, and a sleep that turns out to
// have been shorter than the cap doubles it, so that it finds its way back when the load is gone.
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
  constexpr void paid() { raise_to(ns_ + ns_ / 4 + 1); }
  // It did not, and came `waited_ns` after the spin began, through a sleep.
  constexpr void failed(std::uint64_t waited_ns) {
    if (waited_ns <= cap_ns_) return raise_to(2 * ns_ + 1);
    const std::uint64_t least = cap_ns_ / kLeastShare;
    ns_ = ns_ / 2 < least ? least : ns_ / 2;
  }

 private:
  static constexpr std::uint64_t kLeastShare = 32;
  constexpr void raise_to(std::uint64_t ns) { ns_ = ns < cap_ns_ ? ns : cap_ns_; }

  std::uint64_t cap_ns_;
  std::uint64_t ns_;
};

}  // namespace pickd::abi

// Allowance: how often something may be done: so many times at once, and once more for each pause
// that went by. Time comes in as an argument, in whatever unit the pause has.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pickd::base {

class Allowance {
 public:
  constexpr Allowance(std::uint32_t most, std::uint64_t pause)
      : most_(most), pause_(pause), left_(most) {}

  // Whether it may be done at `now`, which does not go back; if so it counts as done.
  constexpr bool take(std::uint64_t now) {
    if (left_ == most_) since_ = now;
    const std::uint64_t earned = (now - since_) / pause_;
    if (earned != 0) {
      left_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(most_, left_ + earned));
      since_ += earned * pause_;
    }
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  std::uint32_t most_;
  std::uint64_t pause_;
  std::uint32_t left_;
  std::uint64_t since_ = 0;  // from when on the next one is earned
};

}  // namespace pickd::base

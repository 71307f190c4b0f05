// How likely a request misses a latency that it wants, by what is predicted.
#pragma once

#include <algorithm>

namespace pickd::latency {

// `share`: predicted over wanted. Half of the requests miss at 1, one in 18 at 0.7, all but one in
// 27 at 1.5: outcomes scatter about what is predicted by a fifth, and what is far too late cannot
// get later. A logistic in the logarithm of the share, which three squarings make.
constexpr float miss_chance(float share) {
  constexpr float kFarTooLate = 1e6F;
  const float squared = share * share;
  const float fourth = squared * squared;
  const float eighth = std::min(fourth * fourth, kFarTooLate);
  return eighth / (1 + eighth);
}

}  // namespace pickd::latency

// Reading clocks. Nothing below `pick` in the include order may call these: time comes in as an
// argument.
#pragma once

#include <ctime>

#include <cstdint>

namespace pickd::base {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t boot_ns() { return clock_ns(CLOCK_BOOTTIME); }
// Some milliseconds coarse, and three times as quick to read.
inline std::uint64_t coarse_ns() { return clock_ns(CLOCK_MONOTONIC_COARSE); }
inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace pickd::base

// TickClock: times what is short. Reads the core's own counter where that keeps one pace, at half
// the price of CLOCK_MONOTONIC and without waiting for the instructions before it; else that clock.
// Set once while a client is opened, then any thread.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

#include "libclient/deadline.hpp"

namespace pickd::client {

class TickClock {
 public:
  // To be followed by calibrate() after something that takes a while.
  void begin() {
    if (keeps_one_pace()) began_ = look();
  }
  void calibrate() {
    if (began_.ticks == 0) return;
    const Look ended = look();
    const std::uint64_t ticks = ended.ticks - began_.ticks;
    const std::uint64_t ns = ended.ns - began_.ns;
    if (ticks == 0 || ns == 0 || ns >> (64 - kShift) != 0) return;
    ns_a_tick_ = (ns << kShift) / ticks;
    counts_ = ns_a_tick_ != 0;
  }

  std::uint64_t now() const { return counts_ ? count() : monotonic_ns(); }
  // Between two looks by this clock. Counters of two cores may stand a little apart.
  std::uint64_t ns_between(std::uint64_t from, std::uint64_t to) const {
    if (to <= from) return 0;
    return counts_ ? ((to - from) * ns_a_tick_) >> kShift : to - from;
  }

 private:
  static constexpr unsigned kShift = 24;

  // Both clocks at once, as nearly as can be.
  struct Look {
    std::uint64_t ticks = 0;
    std::uint64_t ns = 0;
  };
  static Look look() {
    Look nearest;
    std::uint64_t least = UINT64_MAX;
    for (int turn = 0; turn < 4; ++turn) {
      const std::uint64_t before = count();
      const std::uint64_t ns = monotonic_ns();
      const std::uint64_t apart = count() - before;
      if (apart >= least) continue;
      least = apart;
      nearest = {before + apart / 2, ns};
    }
    return nearest;
  }

#if defined(__x86_64__)
  static std::uint64_t count() { return __builtin_ia32_rdtsc(); }
  // Whatever the core's frequency is and however it sleeps.
  static bool keeps_one_pace() {
    constexpr unsigned kLeaf = 0x80000007;
    constexpr unsigned kInvariantTsc = 1U << 8;
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(kLeaf, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0;
  }
#else
  static std::uint64_t count() { return 0; }
  static bool keeps_one_pace() { return false; }
#endif

  Look began_;
  std::uint64_t ns_a_tick_ = 0;  // shifted left by kShift
  bool counts_ = false;
};

}  // namespace pickd::client

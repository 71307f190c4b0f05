// Deadlines on CLOCK_MONOTONIC: taken once at the start of a call, asked for what is left.
#pragma once

#include <time.h>

#include <cstdint>

#include "pickd/pickd.h"

namespace pickd::client {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

class Deadline {
 public:
  static Deadline never() { return Deadline(kNever); }
  // From here on a timeout means "never", PICKD_NO_DEADLINE among them: in nanoseconds it would not
  // fit a clock.
  static constexpr std::int64_t kNeverUs = INT64_MAX / 4000;
  // `timeout_us` is not negative.
  static Deadline after_us(std::int64_t timeout_us) {
    if (timeout_us >= kNeverUs) return never();
    return Deadline(monotonic_ns() + static_cast<std::uint64_t>(timeout_us) * 1000);
  }
  static Deadline after_ms(std::uint32_t timeout_ms) {
    return after_us(static_cast<std::int64_t>(timeout_ms) * 1000);
  }

  bool is_never() const { return at_ns_ == kNever; }
  bool passed() const { return !is_never() && monotonic_ns() >= at_ns_; }
  Deadline or_sooner(const Deadline& other) const { return at_ns_ < other.at_ns_ ? *this : other; }

  // What ppoll() takes; only when !is_never().
  timespec left() const {
    const std::uint64_t now_ns = monotonic_ns();
    return to_timespec(now_ns >= at_ns_ ? 0 : at_ns_ - now_ns);
  }
  // What pthread_cond_timedwait() on CLOCK_MONOTONIC takes; only when !is_never().
  timespec absolute() const { return to_timespec(at_ns_); }

 private:
  static constexpr std::uint64_t kNever = UINT64_MAX;
  explicit Deadline(std::uint64_t at_ns) : at_ns_(at_ns) {}
  static timespec to_timespec(std::uint64_t ns) {
    return {static_cast<time_t>(ns / 1'000'000'000ULL), static_cast<long>(ns % 1'000'000'000ULL)};
  }

  std::uint64_t at_ns_;
};

}  // namespace pickd::client

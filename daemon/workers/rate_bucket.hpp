// RateBucket: how much of something one user may take a second, shared by all that serve the user.
//
// One atomic word, no lock: the time at which the bucket is full again. Each take moves it on by
// what the amount costs; it holds one second's worth. Time comes in as an argument.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "daemon/workers/wake_pipe.hpp"

namespace pickd::workers {

class RateBucket {
 public:
  static constexpr std::uint64_t kPerSecondMax = 1'000'000'000;

  // 0: no limit.
  explicit RateBucket(std::uint64_t per_s) : per_s_(std::min(per_s, kPerSecondMax)) {}

  // Takes `amount`, at most 2^24, when the bucket is not empty. May overdraw it, so that an amount
  // larger than a second's worth can be had at all; what is overdrawn has to be waited for.
  bool take(std::uint64_t amount, std::uint64_t now_ns) {
    const std::uint64_t per_s = per_s_.load(std::memory_order_relaxed);
    if (per_s == 0 || amount == 0) return true;
    const std::uint64_t now = now_ns * kParts;
    std::uint64_t full_at = full_at_.load(std::memory_order_relaxed);
    while (true) {
      const std::uint64_t from = std::max(full_at, now);
      if (from - now >= kSecond) return false;
      // Relaxed: the word publishes nothing but itself. Partner: the same exchange of other
      // workers.
      if (full_at_.compare_exchange_weak(full_at, from + cost(amount, per_s),
                                         std::memory_order_relaxed)) {
        return true;
      }
    }
  }

  // Takes what there is of `amount` and never refuses: for what must be served all the same.
  void charge(std::uint64_t amount, std::uint64_t now_ns) {
    static_cast<void>(take(amount, now_ns));
  }

  // From the next take on. Relaxed: it publishes nothing but itself.
  void set_rate(std::uint64_t per_s) {
    per_s_.store(std::min(per_s, kPerSecondMax), std::memory_order_relaxed);
  }

  bool is_full(std::uint64_t now_ns) const {
    return full_at_.load(std::memory_order_relaxed) <= now_ns * kParts;
  }

 private:
  // Sixteenths of a nanosecond: fine enough for the highest rate, and 36 years before they wrap.
  static constexpr std::uint64_t kParts = 16;
  static constexpr std::uint64_t kSecond = 1'000'000'000 * kParts;
  static std::uint64_t cost(std::uint64_t amount, std::uint64_t per_s) {
    return amount * kSecond / per_s;
  }

  std::atomic<std::uint64_t> per_s_;
  std::atomic<std::uint64_t> full_at_{0};
};

// What one user (uid) may ask of all workers together. Shared by its channels; kept by the control
// thread for as long as a bucket is not full, so that a new connection brings no new allowance.
struct UserRates {
  UserRates(std::uint64_t messages_per_s, std::uint64_t blocks_per_s)
      : messages(messages_per_s), blocks(blocks_per_s) {}
  RateBucket messages;
  RateBucket blocks;
  // Blocks that nobody was known to hold: beyond it a pick is answered and not remembered.
  RateBucket new_blocks{0};
  WakeCosts wakes;
};

}  // namespace pickd::workers

// LogLimit: how often one kind of line may stand in the log where others decide how often its cause
// comes. The first few at once, then one now and then, which says how many were left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace pickd::base {

class LogLimit {
 public:
  static constexpr std::uint32_t kAtOnce = 5;
  static constexpr std::uint64_t kEveryNs = 10'000'000'000;

  // Whether to log now, and how many were left out since the last time. One thread; `now_ns` of a
  // monotonic clock.
  std::optional<std::uint32_t> take(std::uint64_t now_ns) {
    const std::uint64_t from_ns = std::max(full_at_ns_, now_ns);
    if (from_ns - now_ns > (kAtOnce - 1) * kEveryNs) {
      ++left_out_;
      return std::nullopt;
    }
    full_at_ns_ = from_ns + kEveryNs;
    const std::uint32_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  std::uint64_t full_at_ns_ = 0;
  std::uint32_t left_out_ = 0;
};

}  // namespace pickd::base

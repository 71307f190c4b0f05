// TickClock: the store's clock. Real time in ticks of 50 ms since the file was made, or a tick that
// a replay sets. Threads of the daemon read it once and pass the tick down; the pick core never
// does.
#pragma once

#include "abi/state_layout.hpp"
#include "daemon/base/clock.hpp"

namespace pickd::state {

class TickClock {
 public:
  explicit TickClock(abi::StateHeader& header)
      : header_(&header),
        virtual_(header.clock_mode == static_cast<std::uint32_t>(abi::ClockMode::kVirtual)) {}

  std::uint64_t tick() const {
    // Partner of the acquire: set_virtual_tick(); what was asked for before the step is visible.
    if (virtual_) return header_->virtual_tick.load(std::memory_order_acquire);
    return (base::boot_ns() - header_->tick_base_ns) / abi::kTickNs;
  }
  // Nanoseconds since the tick base, of which tick() is the whole ticks; a virtual clock knows no
  // more than its ticks.
  std::uint64_t now_ns() const {
    if (virtual_) return tick() * abi::kTickNs;
    return base::boot_ns() - header_->tick_base_ns;
  }
  bool is_virtual() const { return virtual_; }

  // Steps a virtual clock forward; false when the clock is real or would go back.
  bool set_virtual_tick(std::uint64_t tick) {
    if (!virtual_ || tick < header_->virtual_tick.load(std::memory_order_relaxed)) return false;
    header_->virtual_tick.store(tick, std::memory_order_release);
    return true;
  }

 private:
  abi::StateHeader* header_;
  bool virtual_;
};

constexpr std::uint32_t stamp_of(std::uint64_t tick) {
  return static_cast<std::uint32_t>(tick) & abi::kStampMask;
}

}  // namespace pickd::state

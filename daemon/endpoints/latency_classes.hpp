// LatencyClasses: endpoints of one pool on one kind of hardware share learned rates. A class has a
// number while the daemon runs, and a key that is the same after a restart.
//
// Numbers are never given anew: what was learned under one stays with it. Beyond the last all
// others share it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace pickd::endpoints {

class LatencyClasses {
 public:
  static constexpr std::uint16_t kMax = 64;

  // Control thread: the number of the class of this name, a new one if need be.
  std::uint16_t number_of(const std::string& name);
  // Control thread: the name of a number; empty: nobody has it.
  std::string name(std::uint16_t number) const {
    return number < names_.size() ? names_[number] : std::string();
  }

  // Any thread: the key of a number; 0: nobody has it. Acquire; partner: the release of
  // number_of(), so that a key that is seen stays.
  std::uint64_t key(std::uint16_t number) const {
    return keys_[number].load(std::memory_order_acquire);
  }

 private:
  std::vector<std::string> names_;  // by number
  std::array<std::atomic<std::uint64_t>, kMax> keys_{};
};

}  // namespace pickd::endpoints

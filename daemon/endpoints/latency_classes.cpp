#include "daemon/endpoints/latency_classes.hpp"

#include <algorithm>

#include "abi/key.hpp"

namespace pickd::endpoints {

std::uint16_t LatencyClasses::number_of(const std::string& name) {
  const auto at = std::find(names_.begin(), names_.end(), name);
  const auto number = static_cast<std::uint16_t>(at - names_.begin());
  if (at != names_.end()) return number;
  if (names_.size() == kMax) return kMax - 1;
  names_.push_back(name);
  const std::uint64_t key = XXH3_64bits(name.data(), name.size());
  keys_[number].store(key == 0 ? 1 : key, std::memory_order_release);
  return number;
}

}  // namespace pickd::endpoints

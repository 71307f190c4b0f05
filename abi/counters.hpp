// The counters as an enumeration and a table, both made from counters.def.
#pragma once

#include <cstdint>

#include "abi/limits.hpp"

namespace pickd::abi {

enum class Counter : std::uint32_t {
#define COUNTER(identifier, metric, help) identifier,
#include "abi/counters.def"
#undef COUNTER
  kCount
};
static_assert(static_cast<std::uint32_t>(Counter::kCount) <= kCountersMax);

struct CounterInfo {
  const char* metric;
  const char* help;
};

inline constexpr CounterInfo kCounterInfos[] = {
#define COUNTER(identifier, metric, help) {metric, help},
#include "abi/counters.def"
#undef COUNTER
};

}  // namespace pickd::abi

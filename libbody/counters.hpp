// Counters that any number of handles share; see counters.def.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pickd/body.h"

namespace pickd::body {

enum class Counter : std::uint8_t {
#define PICKD_BODY_COUNTER(id, name, help) id,
#include "libbody/counters.def"
#undef PICKD_BODY_COUNTER
  kCount
};

}  // namespace pickd::body

struct pickd_body_counters {
  // Relaxed: each is a count by itself, read by pickd_body_counter_value() and publishing nothing.
  std::atomic<std::uint64_t> values[static_cast<std::size_t>(pickd::body::Counter::kCount)] = {};
};

namespace pickd::body {

inline void count(pickd_body_counters* counters, Counter which, std::uint64_t by = 1) {
  if (counters == nullptr) return;
  counters->values[static_cast<std::size_t>(which)].fetch_add(by, std::memory_order_relaxed);
}

}  // namespace pickd::body

#include "libbody/counters.hpp"

#include <iterator>

#include "libbody/memory.hpp"

namespace {

struct CounterWords {
  const char* name;
  const char* help;
};
constexpr CounterWords kWords[] = {
#define PICKD_BODY_COUNTER(id, name, help) {name, help},
#include "libbody/counters.def"
#undef PICKD_BODY_COUNTER
};

}  // namespace

pickd_body_counters* pickd_body_counters_new() {
  return pickd::body::make_object<pickd_body_counters>();
}

void pickd_body_counters_free(pickd_body_counters* counters) { delete counters; }

const char* pickd_body_counter_name(size_t index, const char** help) {
  if (index >= std::size(kWords)) return nullptr;
  if (help != nullptr) *help = kWords[index].help;
  return kWords[index].name;
}

uint64_t pickd_body_counter_value(const pickd_body_counters* counters, size_t index) {
  if (counters == nullptr || index >= std::size(kWords)) return 0;
  return counters->values[index].load(std::memory_order_relaxed);
}

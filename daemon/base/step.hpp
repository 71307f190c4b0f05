// PICKD_STEP(name): a place between two writes to shared memory, where a writer may die. Empty but
// in the crash tests, which compile the same sources with PICKD_STEPS defined and kill a process at
// every step. Knows nothing of what is written.
#pragma once

#ifdef PICKD_STEPS

namespace pickd::base {

// Called at every step when set; set it while no other thread runs.
inline void (*step_hook)(const char* name) = nullptr;

inline void step(const char* name) {
  if (step_hook != nullptr) step_hook(name);
}

}  // namespace pickd::base

#define PICKD_STEP(name) ::pickd::base::step(name)

#else

#define PICKD_STEP(name) static_cast<void>(0)

#endif

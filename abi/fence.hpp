// The one place of the store-fence-load pattern of the sleep protocol.
//
//   publisher:  store tail;   announce_then_check();  load asleep -> ring if set
//   sleeper:    store asleep; announce_then_check();  load tail   -> sleep if nothing new
//
// Both sides need a full barrier between their store and their load, or each can miss the other.
// ThreadSanitizer does not know fences: there the four accesses are sequentially consistent
// instead.
#pragma once

#include <atomic>

namespace pickd::abi {

#if defined(__SANITIZE_THREAD__)
#define PICKD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PICKD_TSAN 1
#endif
#endif

#ifdef PICKD_TSAN
inline constexpr std::memory_order kAnnounceStore = std::memory_order_seq_cst;
inline constexpr std::memory_order kCheckLoad = std::memory_order_seq_cst;
inline void announce_then_check() {}
#else
inline constexpr std::memory_order kAnnounceStore = std::memory_order_release;
inline constexpr std::memory_order kCheckLoad = std::memory_order_acquire;
inline void announce_then_check() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#endif

// One turn of a spin loop: tells the core that nothing is to be speculated on.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace pickd::abi

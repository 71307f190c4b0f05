// Mutex, Lock and Condition: inside one client only, never in shared memory.
#pragma once

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "libclient/deadline.hpp"

namespace pickd::client {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex() { ::pthread_mutex_destroy(&mutex_); }
  void lock() { ::pthread_mutex_lock(&mutex_); }
  void unlock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

// Holds a mutex for a scope; may be let go of and taken again inside it.
class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (held_) mutex_.unlock();
  }
  void unlock() {
    held_ = false;
    mutex_.unlock();
  }
  void lock() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Waiting under a mutex. Not pthread's condition variable: destroying one waits for those who wait
// on it, and a forked child inherits the count of waiters but not the waiters; and the C library's
// loses a wake, in the releases before 2.41, when a waiter loses its core at the wrong moment.
//
// A wake that a waiter has no use for is lost to the others: who leaves without having taken what
// it waited for wakes the next.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Under the mutex of the waiters. Nobody waits: no system call.
  void wake_one() { wake(1); }
  void wake_all() { wake(INT_MAX); }

  // False when the deadline passed. Wakes may be spurious.
  bool wait(Lock& lock, const Deadline& deadline) {
    // Relaxed, and so everywhere: all but the kernel's look happens under the mutex. The kernel
    // looks whether this value still stands before it lets the thread sleep; partner: the addition
    // in wake().
    const std::uint32_t seen = turn_.load(std::memory_order_relaxed);
    const timespec until = deadline.is_never() ? timespec{} : deadline.absolute();
    ++waiters_;
    lock.unlock();
    const bool passed =
        ::syscall(SYS_futex, &turn_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen,
                  deadline.is_never() ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY) != 0 &&
        errno == ETIMEDOUT;
    lock.lock();
    --waiters_;
    return !passed;
  }

 private:
  void wake(int count) {
    if (waiters_ == 0) return;
    turn_.fetch_add(1, std::memory_order_relaxed);
    ::syscall(SYS_futex, &turn_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count);
  }

  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  std::atomic<std::uint32_t> turn_{0};
  std::uint32_t waiters_ = 0;  // under the mutex
};

}  // namespace pickd::client

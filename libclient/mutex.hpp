// Mutex, Lock and Condition over pthreads: inside one client only, never in shared memory.
#pragma once

#include <pthread.h>
#include <time.h>

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
  pthread_mutex_t* native() { return &mutex_; }

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
  pthread_mutex_t* native() { return mutex_.native(); }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

class Condition {
 public:
  Condition() {
    pthread_condattr_t attributes;
    ::pthread_condattr_init(&attributes);
    ::pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    ::pthread_cond_init(&condition_, &attributes);
    ::pthread_condattr_destroy(&attributes);
  }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { ::pthread_cond_destroy(&condition_); }

  void wake_one() { ::pthread_cond_signal(&condition_); }
  void wake_all() { ::pthread_cond_broadcast(&condition_); }
  // False when the deadline passed. Wakes may be spurious.
  bool wait(Lock& lock, const Deadline& deadline) {
    if (deadline.is_never()) return ::pthread_cond_wait(&condition_, lock.native()) == 0;
    const timespec until = deadline.absolute();
    return ::pthread_cond_timedwait(&condition_, lock.native(), &until) == 0;
  }

 private:
  pthread_cond_t condition_;
};

}  // namespace pickd::client

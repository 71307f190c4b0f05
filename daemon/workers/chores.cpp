#include "daemon/workers/chores.hpp"

#include <pthread.h>

#include <utility>

namespace pickd::workers {

void Chores::start() {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), name_);
    run();
  });
}

Chores::~Chores() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  came_.notify_one();
  if (thread_.joinable())
    thread_.join();
  else
    run();
}

void Chores::post(std::function<void()> chore) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(chore));
  }
  came_.notify_one();
}

void Chores::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    came_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> chore = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    chore();
    chore = nullptr;  // what it held ends here, not under the lock
    lock.lock();
  }
}

}  // namespace pickd::workers

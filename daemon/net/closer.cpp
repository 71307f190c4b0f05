#include "daemon/net/closer.hpp"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace pickd::net {

namespace {

constexpr unsigned kThreadsMax = 8;

}  // namespace

struct Closer::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<base::Fd> waiting;
  unsigned threads = 0;
  unsigned idle = 0;
  bool stop = false;
};

Closer::Closer() : shared_(std::make_shared<Shared>()) {}

Closer::~Closer() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->changed.notify_all();
}

void Closer::close(base::Fd fd) {
  if (!fd.valid()) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back(std::move(fd));
  if (shared_->waiting.size() > shared_->idle && shared_->threads < kThreadsMax) {
    ++shared_->threads;
    std::thread([shared = shared_] { run(shared); }).detach();
  }
  shared_->changed.notify_one();
}

void Closer::run(const std::shared_ptr<Shared>& shared) {
  ::pthread_setname_np(::pthread_self(), "pickd-closer");
  std::unique_lock lock(shared->mutex);
  while (true) {
    ++shared->idle;
    shared->changed.wait(lock, [&shared] { return shared->stop || !shared->waiting.empty(); });
    --shared->idle;
    if (shared->waiting.empty()) return;
    base::Fd fd = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    lock.unlock();
    fd.reset();
    lock.lock();
  }
}

}  // namespace pickd::net

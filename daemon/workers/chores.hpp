// Chores: a thread for what a client can make slow and nobody else may wait for: wakes of a user
// whose wakes are slow, and the ends of channels. In order, one at a time. Knows nothing of what it
// does.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pickd::workers {

class Chores {
 public:
  // `name` for people, at most 15 characters; outlives this.
  explicit Chores(const char* name) : name_(name) {}
  // Does what is there, and joins.
  ~Chores();
  Chores(const Chores&) = delete;
  Chores& operator=(const Chores&) = delete;

  void start();
  bool runs() const { return thread_.joinable(); }
  // Any thread; before start() too.
  void post(std::function<void()> chore);

 private:
  void run();

  const char* name_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace pickd::workers

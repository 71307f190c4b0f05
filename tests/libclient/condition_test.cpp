// Condition: who waits under a mutex is woken, one at a time or all, or leaves at the deadline.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "libclient/mutex.hpp"

namespace pickd::client {
namespace {

// Threads that wait until they are let go, one by one.
class Waiters {
 public:
  explicit Waiters(int count) {
    for (int at = 0; at < count; ++at) {
      threads_.emplace_back([this] {
        Lock lock(mutex_);
        ++waiting_;
        while (tokens_ == 0) condition_.wait(lock, Deadline::never());
        --tokens_;
        --waiting_;
        ++gone_;
        changed_.wake_all();
      });
    }
    Lock lock(mutex_);
    // Counted under the mutex, which only wait() lets go of: then they are inside of it.
    while (waiting_ != count) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
  ~Waiters() {
    for (std::thread& thread : threads_) thread.join();
  }
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  void let_go(int count, const std::function<void(Condition&)>& wake) {
    const Lock lock(mutex_);
    tokens_ += count;
    wake(condition_);
  }
  void wait_until_gone(int count) {
    Lock lock(mutex_);
    while (gone_ < count) changed_.wait(lock, Deadline::never());
    EXPECT_EQ(gone_, count);
  }

 private:
  Mutex mutex_;
  Condition condition_;
  Condition changed_;
  int waiting_ = 0;
  int tokens_ = 0;
  int gone_ = 0;
  std::vector<std::thread> threads_;
};

TEST(Condition, WakesOneForEachThing) {
  Waiters waiters(8);
  for (int gone = 1; gone <= 8; ++gone) {
    waiters.let_go(1, [](Condition& condition) { condition.wake_one(); });
    waiters.wait_until_gone(gone);
  }
}

TEST(Condition, WakesAsManyAsAreCalledThoughNoneHasRunYet) {
  Waiters waiters(8);
  waiters.let_go(8, [](Condition& condition) {
    for (int at = 0; at < 8; ++at) condition.wake_one();
  });
  waiters.wait_until_gone(8);
}

TEST(Condition, WakesAll) {
  Waiters waiters(8);
  waiters.let_go(8, [](Condition& condition) { condition.wake_all(); });
  waiters.wait_until_gone(8);
}

TEST(Condition, LeavesAtTheDeadlineWithTheMutexHeld) {
  Mutex mutex;
  Condition condition;
  Lock lock(mutex);
  const Deadline soon = Deadline::after_us(1000);
  while (condition.wait(lock, soon)) {
  }
  EXPECT_TRUE(soon.passed());
  lock.unlock();  // it was held, or this would be none
  lock.lock();
  EXPECT_FALSE(condition.wait(lock, soon)) << "a deadline that has passed";
}

TEST(Condition, ForgetsAWakeThatNobodyWaitedFor) {
  Mutex mutex;
  Condition condition;
  Lock lock(mutex);
  condition.wake_one();
  condition.wake_all();
  const Deadline soon = Deadline::after_us(1000);
  EXPECT_FALSE(condition.wait(lock, soon));
}

// Players share two balls and wait for a free one: a wake that is lost leaves one waiting for ever.
TEST(Condition, LosesNoWakeBetweenManyThreads) {
  constexpr int kPlayers = 8;
  constexpr int kTurns = 4000;
  Mutex mutex;
  Condition free;
  int balls = 2;
  int played = 0;
  std::vector<std::thread> players;
  for (int player = 0; player < kPlayers; ++player) {
    players.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        {
          Lock lock(mutex);
          while (balls == 0) free.wait(lock, Deadline::never());
          --balls;
        }
        Lock lock(mutex);
        ++balls;
        ++played;
        free.wake_one();
      }
    });
  }
  for (std::thread& player : players) player.join();
  EXPECT_EQ(played, kPlayers * kTurns);
  EXPECT_EQ(balls, 2);
}

}  // namespace
}  // namespace pickd::client

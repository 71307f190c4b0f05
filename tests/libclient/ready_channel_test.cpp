// ReadyChannel with real threads; no daemon and no real channel: it does not look at what it holds.
#include "libclient/ready_channel.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "libclient/mutex.hpp"

namespace pickd::client {
namespace {

// The place does not look at what lies there.
Channel* channel(std::uintptr_t number) { return reinterpret_cast<Channel*>(number * 64); }

TEST(ReadyChannel, HoldsOneAndGivesItOnce) {
  ReadyChannel ready;
  EXPECT_EQ(ready.take(), nullptr);
  EXPECT_TRUE(ready.put(channel(1)));
  EXPECT_FALSE(ready.put(channel(2)));
  EXPECT_TRUE(ready.filled());
  EXPECT_EQ(ready.take(), channel(1));
  EXPECT_FALSE(ready.filled());
  EXPECT_EQ(ready.take(), nullptr);
}

TEST(ReadyChannel, GivesAChannelToOneThreadAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  ReadyChannel ready;
  int turns = 0;  // of whoever has the channel: not atomic, so that a sanitizer sees two owners
  ASSERT_TRUE(ready.put(channel(1)));
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        Channel* held = nullptr;
        while ((held = ready.take()) == nullptr) std::this_thread::yield();
        ++turns;
        EXPECT_TRUE(ready.put(held));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, kThreads * kTurns);
}

// As the pool of a client does it: who finds no channel sleeps, and is woken by who lays one down.
// A wake that is lost is a thread that sleeps for ever.
TEST(ReadyChannel, LosesNoWakeOfWhoWaitsForIt) {
  constexpr int kThreads = 3;
  constexpr int kTurns = 5'000;
  ReadyChannel ready;
  Mutex mutex;
  Condition changed;
  ASSERT_TRUE(ready.put(channel(1)));
  const auto take = [&] {
    if (Channel* held = ready.take(); held != nullptr) return held;
    Lock lock(mutex);
    for (;;) {
      if (Channel* held = ready.take(); held != nullptr) return held;
      ready.announce_sleeper();
      if (!ready.filled()) static_cast<void>(changed.wait(lock, Deadline::never()));
      ready.dismiss_sleeper();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        Channel* held = take();
        EXPECT_TRUE(ready.put(held));
        if (!ready.awaited()) continue;
        const Lock lock(mutex);
        changed.wake_one();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ready.take(), channel(1));
}

}  // namespace
}  // namespace pickd::client

// The conformance suite of the reactor, second part: many timers, many descriptors, and what
// handlers may do to each other.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>
#include <vector>

#include "daemon/base/clock.hpp"
#include "tests/net/reactor_suite.hpp"

namespace pickd::net {
namespace {

class ReactorMany : public ReactorSuite {};

constexpr int kTimers = 10'000;

TEST_P(ReactorMany, RunsTenThousandTimersInTheOrderOfTheirTimes) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint64_t> delay_ns(0, 20'000'000);
  std::uint64_t last_due_ns = 0;
  int ran = 0;
  int out_of_order = 0;
  int too_early = 0;
  for (int at = 0; at < kTimers; ++at) {
    const std::uint64_t wait_ns = delay_ns(random);
    const std::uint64_t before_ns = base::monotonic_ns();
    // Its due time lies between the clock before after() and after it; only a lower bound is known
    // here, so a timer is out of order when even its upper bound was passed by the one before.
    auto due_ns = std::make_shared<std::pair<std::uint64_t, std::uint64_t>>();
    reactor_->after(wait_ns, [&, due_ns] {
      if (base::monotonic_ns() < due_ns->first) ++too_early;
      if (due_ns->second < last_due_ns) ++out_of_order;
      last_due_ns = std::max(last_due_ns, due_ns->first);
      if (++ran == kTimers) reactor_->stop();
    });
    *due_ns = {before_ns + wait_ns, base::monotonic_ns() + wait_ns};
  }
  reactor_->run();
  EXPECT_EQ(ran, kTimers);
  EXPECT_EQ(out_of_order, 0);
  EXPECT_EQ(too_early, 0);
}

// Each timer that runs cancels the one after it: only every other one is left.
TEST_P(ReactorMany, RunsNoneOfTheTimersThatOthersOfTheSameTurnCancelled) {
  std::vector<Reactor::TimerId> ids(kTimers);
  std::vector<bool> ran(kTimers);
  for (int at = 0; at < kTimers; ++at) {
    ids[at] = reactor_->after(0, [&, at] {
      ran[at] = true;
      if (at + 1 < kTimers) reactor_->cancel(ids[at + 1]);
    });
  }
  reactor_->after(0, [&] { reactor_->stop(); });
  reactor_->run();
  for (int at = 0; at < kTimers; ++at) ASSERT_EQ(ran[at], at % 2 == 0) << at;
}

TEST_P(ReactorMany, HandlesMoreReadyDescriptorsThanOneTurnTakes) {
  constexpr int kPipes = 400;
  std::vector<Pipe> pipes(kPipes);
  std::vector<int> calls(kPipes);
  int once = 0;
  for (int at = 0; at < kPipes; ++at) {
    pipes[at].write();
    watch(pipes[at].out.get(), kReadable, [&, at](std::uint32_t) {
      if (++calls[at] == 1 && ++once == kPipes) reactor_->stop();
    });
  }
  reactor_->run();  // ends only when none of them starves, though all stay ready
  EXPECT_EQ(once, kPipes);
}

TEST_P(ReactorMany, LetsTimersRunWhileManyDescriptorsStayReady) {
  constexpr int kPipes = 300;
  std::vector<Pipe> pipes(kPipes);
  for (const Pipe& pipe : pipes) {
    pipe.write();
    watch(pipe.out.get(), kReadable, [](std::uint32_t) {});
  }
  int turns = 0;
  std::function<void()> again = [&] {
    if (++turns == 20) return reactor_->stop();
    reactor_->after(0, again);
  };
  again();
  reactor_->run();
  EXPECT_EQ(turns, 20);
}

// The first handler that runs removes every other one, though all of them are ready at once.
TEST_P(ReactorMany, CallsNoneOfTheManyThatTheFirstRemoved) {
  constexpr int kPipes = 100;
  const std::vector<Pipe> pipes(kPipes);
  int calls = 0;
  for (const Pipe& pipe : pipes) {
    pipe.write();
    watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
      ++calls;
      for (const Pipe& each : pipes) reactor_->unwatch(each.out.get());
    });
  }
  run_a_while();
  EXPECT_EQ(calls, 1);
}

TEST_P(ReactorMany, TakesAWatchThatIsRemovedBeforeItWasEverWaitedFor) {
  const std::vector<Pipe> pipes(50);
  for (const Pipe& pipe : pipes) {
    pipe.write();
    watch(pipe.out.get(), kReadable, [](std::uint32_t) { FAIL() << "it was removed"; });
  }
  for (const Pipe& pipe : pipes) reactor_->unwatch(pipe.out.get());
  run_a_while();
}

TEST_P(ReactorMany, HeedsTheLastOfManyChanges) {
  const Pipe pipe;
  int calls = 0;
  watch(pipe.out.get(), 0, [&](std::uint32_t readiness) {
    EXPECT_EQ(readiness, kReadable);
    pipe.read();
    ++calls;
  });
  reactor_->after(0, [&] {  // by now it is waited for, without interest
    for (int count = 0; count < 101; ++count) {
      ASSERT_TRUE(reactor_->change(pipe.out.get(), count % 2 == 0 ? kReadable : 0U).ok());
    }
    pipe.write();
    reactor_->after(0, [&] { run_for_turns(10); });
  });
  reactor_->run();
  EXPECT_EQ(calls, 1);
}

TEST_P(ReactorMany, NoticesAChangeToWhatIsReadyAlready) {
  const Pipe pipe;
  pipe.write();
  bool called = false;
  watch(pipe.out.get(), 0, [&](std::uint32_t) {
    called = true;
    reactor_->stop();
  });
  reactor_->after(1'000'000, [&] {
    EXPECT_FALSE(called) << "nobody asked yet";
    ASSERT_TRUE(reactor_->change(pipe.out.get(), kReadable).ok());
  });
  reactor_->run();
  EXPECT_TRUE(called);
}

TEST_P(ReactorMany, LetsAHandlerWatchItsOwnDescriptorAnew) {
  const Pipe pipe;
  pipe.write();
  int first = 0;
  int second = 0;
  watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
    ++first;
    reactor_->unwatch(pipe.out.get());
    watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
      ++second;
      pipe.read();
      reactor_->stop();
    });
  });
  reactor_->run();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

// Watched, closed and opened again over and over, with the same number each time.
TEST_P(ReactorMany, TellsAThousandDescriptorsOfOneNumberApart) {
  int number = -1;
  int round = 0;
  auto current = std::make_unique<Pipe>();
  std::function<void()> next = [&] {
    const int mine = ++round;
    current->write();
    number = current->out.get();
    watch(number, kReadable, [&, mine](std::uint32_t) {
      EXPECT_EQ(mine, round) << "the handler of a descriptor that is closed";
      reactor_->unwatch(number);
      current.reset();
      if (round == 1000) return reactor_->stop();
      current = std::make_unique<Pipe>();
      EXPECT_EQ(current->out.get(), number) << "the test needs the same number";
      next();
    });
  };
  next();
  reactor_->run();
  EXPECT_EQ(round, 1000);
}

TEST_P(ReactorMany, RefusesAFileAsItIsAlwaysReady) {
  const base::Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  const auto watched = reactor_->watch(file.get(), kReadable, [](std::uint32_t) {});
  ASSERT_FALSE(watched.ok());
  EXPECT_EQ(watched.error().code, -EPERM);
}

TEST_P(ReactorMany, SaysWhichErrorADescriptorHasThatIsNoneOrIsWatched) {
  const Pipe pipe;
  watch(pipe.out.get(), kReadable, [](std::uint32_t) {});
  EXPECT_EQ(reactor_->watch(pipe.out.get(), kReadable, {}).error().code, -EEXIST);
  EXPECT_EQ(reactor_->watch(-1, kReadable, {}).error().code, -EBADF);
}

// What is watched for long costs no turn: the loop sleeps while nothing is ready.
TEST_P(ReactorMany, SleepsWhileNothingIsReady) {
  const std::vector<Pipe> pipes(20);
  for (const Pipe& pipe : pipes) {
    watch(pipe.out.get(), kReadable, [](std::uint32_t) {});
  }
  reactor_->after(50'000'000, [&] { reactor_->stop(); });
  rusage before{};
  rusage after{};
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &before), 0);
  reactor_->run();
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &after), 0);
  // A loop that spins 50 ms would hardly ever give the processor away by itself.
  EXPECT_GE(after.ru_nvcsw - before.ru_nvcsw, 1);
  const auto used_us = [](const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  EXPECT_LT(used_us(after) - used_us(before), 25'000) << "microseconds of processor time";
}

PICKD_EACH_REACTOR(ReactorMany);

}  // namespace
}  // namespace pickd::net

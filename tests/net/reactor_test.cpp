// The conformance suite of the reactor, first part: readiness, removal, timers, wakes.
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "daemon/base/clock.hpp"
#include "tests/net/reactor_suite.hpp"

namespace pickd::net {
namespace {

class ReactorConformance : public ReactorSuite {};

TEST_P(ReactorConformance, HasAName) { EXPECT_EQ(reactor_->name(), GetParam().name); }

TEST_P(ReactorConformance, CallsTheHandlerOfAReadableDescriptor) {
  const Pipe pipe;
  pipe.write();
  std::uint32_t seen = 0;
  watch(pipe.out.get(), kReadable, [&](std::uint32_t readiness) {
    seen = readiness;
    EXPECT_TRUE(pipe.read());
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_EQ(seen, kReadable);
}

TEST_P(ReactorConformance, CallsAgainAndAgainWhileADescriptorStaysReady) {
  const Pipe pipe;
  pipe.write();
  int calls = 0;
  watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
    if (++calls == 3) reactor_->stop();
  });
  reactor_->run();
  EXPECT_EQ(calls, 3);
}

TEST_P(ReactorConformance, TellsReadableFromWritable) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const base::Fd first(ends[0]);
  const base::Fd second(ends[1]);
  std::uint32_t seen = 0;
  watch(first.get(), kReadable | kWritable, [&](std::uint32_t readiness) {
    seen = readiness;
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_EQ(seen, kWritable);
}

TEST_P(ReactorConformance, ReportsAHangUpWithoutBeingAsked) {
  Pipe pipe;
  std::uint32_t seen = 0;
  watch(pipe.out.get(), 0, [&](std::uint32_t readiness) {
    seen = readiness;
    reactor_->unwatch(pipe.out.get());
    reactor_->stop();
  });
  pipe.in.reset();
  reactor_->run();
  EXPECT_NE(seen & kHungUp, 0U);
}

TEST_P(ReactorConformance, HeedsAChangeOfInterest) {
  const Pipe pipe;
  pipe.write();
  int calls = 0;
  watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
    ++calls;
    ASSERT_TRUE(reactor_->change(pipe.out.get(), 0).ok());
  });
  run_a_while();
  EXPECT_EQ(calls, 1);
}

TEST_P(ReactorConformance, RefusesToChangeWhatIsNotWatched) {
  const Pipe pipe;
  const auto changed = reactor_->change(pipe.out.get(), kReadable);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, -ENOENT);
}

TEST_P(ReactorConformance, RefusesADescriptorThatIsNone) {
  EXPECT_FALSE(reactor_->watch(-1, kReadable, [](std::uint32_t) {}).ok());
}

TEST_P(ReactorConformance, RefusesToWatchADescriptorTwiceAndKeepsTheFirstHandler) {
  const Pipe pipe;
  int first = 0;
  watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
    ++first;
    pipe.read();
    reactor_->stop();
  });
  EXPECT_FALSE(reactor_->watch(pipe.out.get(), kReadable, [](std::uint32_t) { FAIL(); }).ok());
  pipe.write();
  reactor_->run();
  EXPECT_EQ(first, 1);
}

TEST_P(ReactorConformance, LetsAHandlerUnwatchItselfAndGoOn) {
  const Pipe pipe;
  pipe.write();
  int calls = 0;
  auto witness = std::make_shared<int>(7);
  watch(pipe.out.get(), kReadable, [&, witness](std::uint32_t) {
    ++calls;
    reactor_->unwatch(pipe.out.get());
    EXPECT_EQ(*witness, 7) << "what the handler holds outlives its own removal";
  });
  run_a_while();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_P(ReactorConformance, CallsNoHandlerThatAnotherOfTheSameTurnRemoved) {
  const Pipe pipes[2];
  for (const Pipe& pipe : pipes) pipe.write();
  int calls = 0;
  for (int at = 0; at < 2; ++at) {
    watch(pipes[at].out.get(), kReadable, [&, at](std::uint32_t) {
      ++calls;
      pipes[at].read();
      reactor_->unwatch(pipes[1 - at].out.get());
    });
  }
  run_a_while();
  EXPECT_EQ(calls, 1);
}

// A number that is closed and comes back within one turn names another descriptor.
TEST_P(ReactorConformance, TellsAReusedNumberFromTheDescriptorThatHadIt) {
  Pipe first;
  Pipe second;
  first.write();
  second.write();
  const int number[] = {first.out.get(), second.out.get()};
  int fresh = 0;
  const auto replace = [&](Pipe& self, Pipe& other) {
    self.read();
    reactor_->unwatch(other.out.get());
    const int reused = other.out.get();
    // A pipe with nothing in it takes the number.
    const Pipe quiet;
    const int duplicate = ::dup2(quiet.out.get(), reused);
    ASSERT_EQ(duplicate, reused);
    watch(reused, kReadable, [this, reused, &fresh](std::uint32_t readiness) {
      if ((readiness & kReadable) != 0) ++fresh;
      reactor_->unwatch(reused);
    });
  };
  watch(number[0], kReadable, [&](std::uint32_t) { replace(first, second); });
  watch(number[1], kReadable, [&](std::uint32_t) { replace(second, first); });
  run_a_while();
  EXPECT_EQ(fresh, 0) << "an event of the old descriptor reached the new one's handler";
}

TEST_P(ReactorConformance, LetsAHandlerWatchAnother) {
  const Pipe first;
  const Pipe second;
  first.write();
  second.write();
  bool second_called = false;
  watch(first.out.get(), kReadable, [&](std::uint32_t) {
    first.read();
    watch(second.out.get(), kReadable, [&](std::uint32_t) {
      second_called = true;
      reactor_->stop();
    });
  });
  reactor_->run();
  EXPECT_TRUE(second_called);
}

TEST_P(ReactorConformance, RunsTimersInTheOrderOfTheirTimes) {
  std::vector<int> order;
  reactor_->after(3'000'000, [&] {
    order.push_back(3);
    reactor_->stop();
  });
  reactor_->after(1'000'000, [&] { order.push_back(1); });
  reactor_->after(2'000'000, [&] { order.push_back(2); });
  reactor_->run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_P(ReactorConformance, RunsNoTimerBeforeItsTime) {
  const std::uint64_t start_ns = base::monotonic_ns();
  std::uint64_t called_ns = 0;
  reactor_->after(20'000'000, [&] {
    called_ns = base::monotonic_ns();
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_GE(called_ns - start_ns, 20'000'000U);
}

TEST_P(ReactorConformance, RunsATimerOnce) {
  int calls = 0;
  reactor_->after(0, [&] { ++calls; });
  run_a_while();
  EXPECT_EQ(calls, 1);
}

TEST_P(ReactorConformance, RunsNoTimerThatWasCancelled) {
  bool called = false;
  const auto cancelled = reactor_->after(0, [&] { called = true; });
  const auto later = reactor_->after(1'000'000, [&] { called = true; });
  reactor_->cancel(cancelled);
  // Due in the same turn, cancelled by the timer before it.
  Reactor::TimerId second = 0;
  reactor_->after(0, [&] { reactor_->cancel(second); });
  second = reactor_->after(0, [&] { called = true; });
  reactor_->cancel(later);
  reactor_->after(3'000'000, [&] { reactor_->stop(); });
  reactor_->run();
  EXPECT_FALSE(called);
}

TEST_P(ReactorConformance, TakesACancelOfATimerThatRanOrNeverWas) {
  Reactor::TimerId own = 0;
  own = reactor_->after(0, [&] { reactor_->cancel(own); });
  reactor_->cancel(987'654);
  run_a_while();
  reactor_->cancel(own);
}

TEST_P(ReactorConformance, LetsATimerSetTheNext) {
  int calls = 0;
  std::function<void()> again = [&] {
    if (++calls == 5)
      reactor_->stop();
    else
      reactor_->after(1000, again);
  };
  reactor_->after(1000, again);
  reactor_->run();
  EXPECT_EQ(calls, 5);
}

TEST_P(ReactorConformance, ServesDescriptorsBetweenTimersThatAreAlwaysDue) {
  const Pipe pipe;
  pipe.write();
  std::function<void()> again = [&] { reactor_->after(0, again); };
  again();
  bool called = false;
  watch(pipe.out.get(), kReadable, [&](std::uint32_t) {
    called = true;
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_TRUE(called);
}

TEST_P(ReactorConformance, RunsTheWakeHandlerForAWakeOfAnotherThread) {
  std::thread::id ran_on;
  reactor_->set_wake_handler([&] {
    ran_on = std::this_thread::get_id();
    reactor_->stop();
  });
  std::thread other([&] { reactor_->wake(); });
  reactor_->run();
  other.join();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_P(ReactorConformance, MakesOneWakeOfManyBeforeItRuns) {
  int wakes = 0;
  reactor_->set_wake_handler([&] { ++wakes; });
  for (int at = 0; at < 100; ++at) reactor_->wake();
  run_a_while();
  // stop() wakes too, and may be seen before the loop ends.
  EXPECT_GE(wakes, 1);
  EXPECT_LE(wakes, 2);
}

TEST_P(ReactorConformance, LosesNoWakeOfAnyThread) {
  constexpr int kThreads = 3;
  constexpr int kWakes = 2000;
  std::atomic<int> posted{0};
  int seen = 0;
  reactor_->set_wake_handler([&] {
    seen = posted.load();
    if (seen == kThreads * kWakes) reactor_->stop();
  });
  std::vector<std::thread> threads;
  for (int at = 0; at < kThreads; ++at) {
    threads.emplace_back([&] {
      for (int wake = 0; wake < kWakes; ++wake) {
        posted.fetch_add(1);
        reactor_->wake();
      }
    });
  }
  reactor_->run();  // ends only if the last wake is seen
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, kThreads * kWakes);
}

TEST_P(ReactorConformance, StopsWhenAnotherThreadSaysSo) {
  std::thread other([&] { reactor_->stop(); });
  reactor_->run();
  other.join();
}

PICKD_EACH_REACTOR(ReactorConformance);

}  // namespace
}  // namespace pickd::net

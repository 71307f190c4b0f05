// The asynchronous queue against a real daemon: depth, the event descriptor, cancelling.
#include <cerrno>
#include <csignal>
#include <set>

#include "tests/system/queue.hpp"
#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

TEST(SystemQueue, TakesAsManyPicksAsItsDepth) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 8);
  const Request request("hello");
  for (std::uint64_t at = 0; at < 8; ++at) ASSERT_EQ(queue.submit(request, at), 0);
  EXPECT_EQ(queue.submit(request, 8), -EAGAIN);
  const Result result;
  std::uint64_t data = 99;
  ASSERT_TRUE(queue.next(result, &data));
  EXPECT_EQ(data, 0U) << "one ring: answers come in order";
  EXPECT_EQ(queue.submit(request, 8), 0);
  EXPECT_EQ(queue.submit(request, 9), -EAGAIN);
  for (std::uint64_t at = 1; at <= 8; ++at) {
    ASSERT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, at);
  }
  EXPECT_EQ(queue.poll(result, &data), 0);
}

TEST(SystemQueue, TakesAsManyPicksAsItsDepthFromADaemonThatTakesNone) {
  for (const std::uint32_t depth : {1U, 256U, 4096U}) {
    Daemon daemon;
    const Client client(daemon);
    const Queue queue(client, depth);
    Request request(prompt_of(4000));  // a thousand tokens
    const std::string model = "llama-3.1-70b-instruct";
    request.raw.model = {model.data(), model.size()};
    {
      const Standstill standstill(daemon);
      for (std::uint64_t at = 0; at < depth; ++at)
        ASSERT_EQ(queue.submit(request, at), 0) << at << " of " << depth;
      EXPECT_EQ(queue.submit(request, depth), -EAGAIN);
    }
    const Result result;
    for (std::uint64_t at = 0; at < depth; ++at) {
      std::uint64_t data = 0;
      ASSERT_TRUE(queue.next(result, &data));
      ASSERT_EQ(data, at);
    }
  }
}

TEST(SystemQueue, MakesItsDescriptorReadableWhenAnswersWait) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 0);
  const Result result;
  std::uint64_t data = 0;
  const int descriptor = pickd_queue_event_fd(queue.get());
  EXPECT_FALSE(queue.readable(std::chrono::milliseconds(0)));
  for (std::uint64_t round = 0; round < 200; ++round) {
    ASSERT_EQ(queue.submit(Request("hello"), round), 0);
    ASSERT_TRUE(queue.readable(std::chrono::milliseconds(kGenerous))) << round;
    ASSERT_EQ(queue.poll(result, &data), 1);
    EXPECT_EQ(data, round);
    ASSERT_EQ(queue.poll(result, &data), 0);
    ASSERT_FALSE(queue.readable(std::chrono::milliseconds(0))) << round;
  }
  EXPECT_EQ(pickd_queue_event_fd(queue.get()), descriptor);
}

// While a pick is outstanding the library does not ring for the next record. A worker that never
// spins sleeps at every chance: a bell that nobody rings would leave one of these unanswered.
TEST(SystemQueue, RingsForWhatWasSubmittedWhileOthersWereOutstanding) {
  Settings settings;
  settings.rest = "workers: {spin: 0us}";
  Daemon daemon(settings);
  const Client client(daemon);
  const Queue queue(client, 8);
  const Result result;
  const Request request(prompt_of(300));
  std::uint64_t submitted = 0;
  std::uint64_t answered = 0;
  constexpr std::uint64_t kPicks = 30'000;
  while (answered < kPicks) {
    const std::uint64_t row = 1 + submitted % 4;
    for (std::uint64_t at = 0; at < row && submitted < kPicks; ++at) {
      if (queue.submit(request, submitted) == 0) ++submitted;
    }
    std::uint64_t data = 0;
    ASSERT_TRUE(queue.next(result, &data)) << answered << " of " << submitted << " answered";
    EXPECT_EQ(data, answered++);
    // Others are outstanding more often than not.
    pickd_report_info done = PICKD_REPORT_INIT;
    done.ticket = result.ticket();
    done.kind = PICKD_REPORT_DONE;
    ASSERT_EQ(pickd_queue_report(queue.get(), &done), 0);
  }
  std::uint64_t data = 0;
  EXPECT_EQ(queue.poll(result, &data), 0);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
}

TEST(SystemQueue, RingsForARowWhoseOthersWereCancelled) {
  Settings settings;
  settings.rest = "workers: {spin: 0us}";
  Daemon daemon(settings);
  const Client client(daemon);
  const Queue queue(client, 8);
  const Result result;
  std::uint64_t data = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t rows = 0;
  for (int round = 0; round < 3000; ++round) {
    pickd_ticket first;
    pickd_ticket second;
    ASSERT_TRUE(eventually([&] {
      EXPECT_EQ(queue.poll(result, &data), 0) << "nothing is awaited";
      return queue.submit(Request("hello"), 0, &first) == 0;
    }));
    if (queue.submit(Request("hello"), 1, &second) == 0) {  // else cancelled ones fill the queue
      ASSERT_EQ(pickd_queue_cancel(queue.get(), second), 0);
      ++cancelled;
      ++rows;
    }
    ASSERT_EQ(pickd_queue_cancel(queue.get(), first), 0);
    ++cancelled;
  }
  EXPECT_GT(rows, 1000U);
  // Nobody polls after the last.
  EXPECT_TRUE(eventually([&] { return daemon.counter("picks_cancelled") == cancelled; }));
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
}

TEST(SystemQueue, SaysHowLongHashingTook) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 8);
  const Result result;
  std::uint64_t data = 0;
  ASSERT_EQ(queue.submit(Request(prompt_of(100'000)), 0), 0);
  ASSERT_TRUE(queue.next(result, &data));
  EXPECT_GT(pickd_result_hash_ns(result.get()), 0U);
  ASSERT_EQ(queue.submit(Request(), 1), 0);
  ASSERT_TRUE(queue.next(result, &data));
  EXPECT_EQ(pickd_result_hash_ns(result.get()), 0U) << "of this pick, not of the one before";
}

TEST(SystemQueue, GivesBackWhatACancelledPickReserved) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 64);
  std::vector<pickd_ticket> tickets(20);
  for (std::uint64_t at = 0; at < 20; ++at) {
    ASSERT_EQ(queue.submit(Request("hello"), at, &tickets[at]), 0);
  }
  for (std::uint64_t at = 0; at < 20; at += 2) {
    EXPECT_EQ(pickd_queue_cancel(queue.get(), tickets[at]), 0);
    EXPECT_EQ(pickd_queue_cancel(queue.get(), tickets[at]), -ESTALE) << "once";
  }
  EXPECT_EQ(pickd_queue_cancel(queue.get(), {1, 2}), -ESTALE);
  const Result result;
  std::uint64_t data = 0;
  for (std::uint64_t at = 1; at < 20; at += 2) {
    ASSERT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, at);
    EXPECT_EQ(result.ticket().sequence, tickets[at].sequence);
  }
  EXPECT_EQ(queue.poll(result, &data), 0);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 10; }));
  EXPECT_EQ(daemon.counter("picks_cancelled"), 10U);
  EXPECT_EQ(pickd_queue_cancel(queue.get(), tickets[1]), -ESTALE) << "its answer was taken";
}

TEST(SystemQueue, AnswersAThousandOutstandingPicksOnceEach) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 1024);
  std::map<std::uint64_t, pickd_ticket> tickets;
  for (std::uint64_t at = 0; at < 1000; ++at) {
    const Request request(prompt_of(100 + at, static_cast<unsigned>(at)));
    int code = -EAGAIN;
    // The ring of submissions is shorter than that: the daemon takes them out meanwhile.
    ASSERT_TRUE(eventually([&] {
      code = queue.submit(request, at, &tickets[at]);
      return code != -EAGAIN;
    }));
    ASSERT_EQ(code, 0);
  }
  const Result result;
  std::set<std::uint64_t> seen;
  for (int count = 0; count < 1000; ++count) {
    std::uint64_t data = 0;
    ASSERT_TRUE(queue.next(result, &data));
    EXPECT_EQ(pickd_result_status(result.get()), 0);
    EXPECT_EQ(result.ticket().sequence, tickets.at(data).sequence);
    EXPECT_EQ(pickd_result_prompt_tokens(result.get()), (100 + data + 3) / 4);
    EXPECT_TRUE(seen.insert(data).second) << data << " twice";
    pickd_report_info done = PICKD_REPORT_INIT;
    done.ticket = result.ticket();
    done.kind = PICKD_REPORT_DONE;
    ASSERT_TRUE(eventually([&] { return pickd_queue_report(queue.get(), &done) == 0; }));
  }
  std::uint64_t data = 0;
  EXPECT_EQ(queue.poll(result, &data), 0);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
  const StatusView status = daemon.status();
  EXPECT_EQ(status.counters.at("picks"), 1000U);
  EXPECT_EQ(status.counters.at("requests_done"), 1000U);
  EXPECT_EQ(status.counters.at("completions_dropped"), 0U);
}

TEST(SystemQueue, LeavesNothingReservedForAnswersThatNobodyTook) {
  Daemon daemon;
  const Client client(daemon);
  {
    const Queue queue(client, 64);
    for (std::uint64_t at = 0; at < 50; ++at) ASSERT_EQ(queue.submit(Request("hello"), at), 0);
    const Result result;
    std::uint64_t data = 0;
    ASSERT_TRUE(queue.next(result, &data));
  }
  EXPECT_TRUE(eventually([&] { return daemon.status().channels == 1; }));
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 1; }))
      << daemon.inflight() << " in flight: one answer was taken, and its request goes on";
}

TEST(SystemQueue, AnswersWithoutTheDaemonWhatItLeftOpen) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 64);
  const int descriptor = pickd_queue_event_fd(queue.get());
  daemon.signal(SIGSTOP);
  for (std::uint64_t at = 0; at < 10; ++at) ASSERT_EQ(queue.submit(Request("hello"), at), 0);
  daemon.signal(SIGKILL);
  daemon.reap();
  const Result result;
  std::uint64_t data = 0;
  for (std::uint64_t at = 0; at < 10; ++at) {
    ASSERT_TRUE(queue.next(result, &data));
    // Stopped is not at once: the first may have been answered by the daemon.
    EXPECT_EQ(pickd_result_status(result.get()), 0);
    EXPECT_EQ(data, at);
  }
  EXPECT_TRUE(result.degraded());
  EXPECT_EQ(pickd_queue_poll(queue.get(), result.get(), &data), 0) << "once each";
  EXPECT_EQ(queue.submit(Request("hello"), 10), 0);
  ASSERT_TRUE(queue.next(result, &data));
  EXPECT_TRUE(result.degraded());
  EXPECT_EQ(data, 10U);
  daemon.start();
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(queue.submit(Request("hello"), 11), 0);
    EXPECT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, 11U);
    return !result.degraded();
  }));
  EXPECT_EQ(pickd_result_status(result.get()), 0);
  EXPECT_EQ(pickd_queue_event_fd(queue.get()), descriptor) << "the number survives";
}

}  // namespace
}  // namespace pickd::systests

// Queues and a daemon that does not answer in time: stopped, killed, replaced. Every pick is
// answered once, within its deadline where it has one, and nothing stays reserved.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <deque>
#include <set>

#include "tests/system/each_answers.hpp"
#include "tests/system/queue.hpp"
#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

constexpr std::int64_t kShortUs = 50'000;
constexpr unsigned kPrompts = 32;
constexpr std::size_t kPromptBytes = 4'096;

Request& timed(Request& request, std::int64_t timeout_us = kShortUs) {
  request.raw.queue_timeout_us = timeout_us;
  return request;
}

TEST(SystemQueueDeadline, AnswersWithoutADaemonThatStandsStill) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 64);
  const Result result;
  std::uint64_t data = 0;
  Request warm(prompt_of(kPromptBytes, 1));
  ASSERT_EQ(pick(client, warm, result), 0);
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  const std::string home = result.name();
  std::vector<pickd_ticket> tickets(10);
  {
    const Standstill standstill(daemon);
    ASSERT_EQ(queue.submit(Request("without a deadline"), 100), 0);
    for (std::uint64_t at = 0; at < tickets.size(); ++at) {
      ASSERT_EQ(queue.submit(timed(warm), at, &tickets[at]), 0);
    }
    for (std::uint64_t at = 0; at < tickets.size(); ++at) {
      ASSERT_TRUE(queue.next(result, &data)) << "woken by the deadline";
      EXPECT_EQ(data, at);
      EXPECT_EQ(pickd_result_status(result.get()), 0);
      EXPECT_TRUE(result.degraded());
      EXPECT_EQ(result.ticket().sequence, tickets[at].sequence);
      EXPECT_EQ(result.match_tokens(result.name() == home ? 0 : 1), kPromptBytes / 4);
      EXPECT_EQ(pickd_queue_cancel(queue.get(), tickets[at]), -ESTALE) << "it is answered";
    }
    EXPECT_EQ(queue.poll(result, &data), 0) << "once each; the one without a deadline waits";
    EXPECT_FALSE(queue.readable(std::chrono::milliseconds(0))) << "and nothing more to look for";
  }
  ASSERT_TRUE(queue.next(result, &data));
  EXPECT_EQ(data, 100U);
  EXPECT_FALSE(result.degraded());
  pickd_report_info waited = PICKD_REPORT_INIT;
  waited.ticket = result.ticket();
  waited.kind = PICKD_REPORT_DONE;
  EXPECT_EQ(queue.report(waited), 0);
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(queue.submit(timed(warm, kGenerousUs), 99), 0);
    EXPECT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, 99U) << "no answer that came too late";
    pickd_report_info done = PICKD_REPORT_INIT;
    done.ticket = result.ticket();
    done.kind = PICKD_REPORT_DONE;
    EXPECT_EQ(queue.report(done), 0);
    return !result.degraded();
  }));
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << "what was late is released";
  EXPECT_EQ(daemon.counter("picks_cancelled"), tickets.size());
}

TEST(SystemQueueDeadline, WaitsForADeadlineThatIsTooFarAwayForTheClock) {
  constexpr std::int64_t kWrapsAroundUs = 18'446'744'073'709'552;  // 2^64 ns
  constexpr std::int64_t kFar[] = {kWrapsAroundUs,   4 * kWrapsAroundUs + 1, INT64_MAX / 4000 - 1,
                                   INT64_MAX / 4000, INT64_MAX / 8 - 1,      PICKD_NO_DEADLINE};
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 16);
  const Result result;
  std::uint64_t data = 0;
  {
    const Standstill standstill(daemon);
    for (std::size_t at = 0; at < std::size(kFar); ++at) {
      Request request("hello");
      ASSERT_EQ(queue.submit(timed(request, kFar[at]), at), 0);
      EXPECT_EQ(queue.poll(result, &data), 0) << kFar[at] << " us are not over";
    }
  }
  for (std::size_t at = 0; at < std::size(kFar); ++at) {
    ASSERT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, at);
    EXPECT_FALSE(result.degraded()) << kFar[at];
  }
}

TEST(SystemQueueDeadline, KeepsAnsweringHoweverLongItStandsStill) {
  constexpr std::uint64_t kDepth = 8;
  constexpr std::uint64_t kPicks = 400;
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, kDepth);
  const Result result;
  {
    const Standstill standstill(daemon);
    std::uint64_t submitted = 0;
    std::vector<int> answers(kPicks);
    Request request("hello");
    timed(request, 5'000);
    for (std::uint64_t answered = 0; answered < kPicks; ++answered) {
      while (submitted < kPicks && submitted - answered < kDepth) {
        ASSERT_EQ(queue.submit(request, submitted), 0) << submitted;
        ++submitted;
      }
      std::uint64_t data = kPicks;
      ASSERT_TRUE(queue.next(result, &data));
      ASSERT_LT(data, kPicks);
      ++answers[data];
      EXPECT_EQ(pickd_result_status(result.get()), 0);
      EXPECT_TRUE(result.degraded());
    }
    for (const int count : answers) EXPECT_EQ(count, 1);
  }
  Request after("after");
  std::uint64_t data = 0;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(queue.submit(timed(after.subset({"e2"})), 7), 0);
    EXPECT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, 7U);
    EXPECT_EQ(result.name(), "e2");
    return !result.degraded();
  }));
  EXPECT_TRUE(eventually([&] {
    const auto endpoints = daemon.endpoints();
    return std::all_of(endpoints.begin(), endpoints.end(), [](const auto& entry) {
      return entry.first == "e2" || entry.second.inflight_requests == 0;
    });
  }));
}

TEST(SystemQueueDeadline, RefusesANegativeTimeout) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 8);
  Request request("hello");
  EXPECT_EQ(queue.submit(timed(request, -1), 1), -EINVAL);
  EXPECT_NE(client.last_error().find("queue_timeout_us"), std::string::npos);
  EXPECT_EQ(queue.submit(timed(request, PICKD_NO_DEADLINE), 1), 0);
  const Result result;
  std::uint64_t data = 0;
  EXPECT_TRUE(queue.next(result, &data));
  EXPECT_FALSE(result.degraded());
}

// ---- Under load ---------------------------------------------------------------------------------

constexpr int kThreads = 4;
constexpr std::size_t kOutstanding = 16;
// More than the daemon answers a thread between two kills and the end of the test.
constexpr std::size_t kReportedKept = 20'000;

// Threads with a queue each, 16 picks outstanding all the time. Each answer must be for a pick that
// is outstanding: none is lost, none comes twice.
class QueueLoad {
 public:
  QueueLoad(const Client& client, std::int64_t timeout_us)
      : client_(client), timeout_us_(timeout_us) {
    for (int at = 0; at < kThreads; ++at) workers_.push_back(std::make_unique<Worker>());
    for (auto& worker : workers_)
      worker->thread = std::thread([this, &own = *worker] { run(own); });
  }
  QueueLoad(const QueueLoad&) = delete;
  QueueLoad& operator=(const QueueLoad&) = delete;
  ~QueueLoad() { end(); }

  bool wait_for(bool degraded, std::uint64_t more) {
    return each_answers(workers_, degraded, more);
  }

  // Takes the answers of all that is outstanding, then looks at the accounts.
  void end_and_check() {
    end();
    std::uint64_t by_daemon = 0;
    std::uint64_t degraded = 0;
    for (auto& worker : workers_) {
      EXPECT_EQ(worker->fault, "");
      EXPECT_EQ(worker->without_match, 0U) << "degraded picks of known prompts, without a match";
      by_daemon += worker->by_daemon;
      degraded += worker->degraded;
      for (const pickd_ticket ticket : worker->reported) worker->unreported.push_back(ticket);
      for (const pickd_ticket ticket : worker->unreported) {
        const int code = client_.report(ticket, PICKD_REPORT_DONE);
        EXPECT_TRUE(code == 0 || code == -ESTALE) << pickd_strerror(code);
      }
    }
    std::printf("%llu answers of the daemon, %llu of the library, each once\n",
                static_cast<unsigned long long>(by_daemon),
                static_cast<unsigned long long>(degraded));
  }

 private:
  struct Worker {
    std::thread thread;
    std::atomic<std::uint64_t> by_daemon{0};
    std::atomic<std::uint64_t> degraded{0};
    std::uint64_t without_match = 0;
    std::string fault;
    std::vector<pickd_ticket> unreported;
    // The last ones that were handed over: a daemon that is killed takes with it what it has not
    // applied.
    std::deque<pickd_ticket> reported;

    std::uint64_t answers(bool of_degraded) const { return of_degraded ? degraded : by_daemon; }
  };

  void end() {
    stop_ = true;
    for (auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
  }

  void run(Worker& own) {
    const Queue queue(client_, kOutstanding);
    const Result result;
    std::set<std::uint64_t> outstanding;
    std::uint64_t next = 0;
    while (own.fault.empty() && (!stop_ || !outstanding.empty())) {
      while (!stop_ && outstanding.size() < kOutstanding) {
        Request request(prompt_of(kPromptBytes, static_cast<unsigned>(next % kPrompts)));
        const int code = queue.submit(timed(request, timeout_us_), next);
        if (code == -EAGAIN && !outstanding.empty()) break;  // the ring is full: poll first
        if (code != 0) {
          own.fault = std::string("not taken: ") + pickd_strerror(code);
          break;
        }
        outstanding.insert(next++);
      }
      std::uint64_t data = 0;
      if (!queue.next(result, &data)) {
        own.fault = "an answer never came";
      } else if (outstanding.erase(data) == 0) {
        own.fault = "an answer came twice";
      } else if (pickd_result_status(result.get()) != 0 || result.count() == 0) {
        own.fault =
            std::string("answered with ") + pickd_strerror(pickd_result_status(result.get()));
      } else {
        take(own, queue, result);
      }
    }
  }

  static void take(Worker& own, const Queue& queue, const Result& result) {
    if (result.degraded()) {
      std::uint32_t match = 0;
      for (std::size_t at = 0; at < result.count(); ++at)
        match = std::max(match, result.match_tokens(at));
      own.without_match += match == 0 ? 1 : 0;
      ++own.degraded;
    } else {
      ++own.by_daemon;
    }
    pickd_report_info done = PICKD_REPORT_INIT;
    done.ticket = result.ticket();
    done.kind = PICKD_REPORT_DONE;
    if (queue.report(done) != 0) {
      own.unreported.push_back(result.ticket());
    } else if (!result.degraded()) {
      own.reported.push_back(result.ticket());
      if (own.reported.size() > kReportedKept) own.reported.pop_front();
    }
  }

  const Client& client_;
  const std::int64_t timeout_us_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
};

class SystemQueueFaults : public testing::Test {
 protected:
  SystemQueueFaults() {
    const Result result;
    for (unsigned seed = 0; seed < kPrompts; ++seed) {
      EXPECT_EQ(pick(client_, Request(prompt_of(kPromptBytes, seed)), result), 0);
      EXPECT_EQ(client_.report(result.ticket(), PICKD_REPORT_DONE), 0);
    }
  }

  void expect_even_accounts() {
    const Result result;
    EXPECT_EQ(pick(client_, Request(prompt_of(kPromptBytes, 3)), result), 0);
    EXPECT_FALSE(result.degraded());
    EXPECT_GT(result.match_tokens(), 0U) << "the store is warm";
    EXPECT_EQ(client_.report(result.ticket(), PICKD_REPORT_DONE), 0);
    EXPECT_TRUE(eventually([&] { return daemon_.inflight() == 0; })) << daemon_.inflight();
  }

  Daemon daemon_;
  const Client client_{daemon_};
};

TEST_F(SystemQueueFaults, ADaemonKilledUnderLoadLosesNoPickOfAQueue) {
  QueueLoad load(client_, 0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(load.wait_for(false, 100));
    daemon_.signal(SIGKILL);
    daemon_.reap();
    EXPECT_TRUE(load.wait_for(true, 100));
    daemon_.start();
  }
  EXPECT_TRUE(load.wait_for(false, 100)) << "the library is back by itself";
  load.end_and_check();
  expect_even_accounts();
}

TEST_F(SystemQueueFaults, ADaemonThatStandsStillLosesNoPickOfAQueue) {
  QueueLoad load(client_, 20'000);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(load.wait_for(false, 100));
    const Standstill standstill(daemon_);
    EXPECT_TRUE(load.wait_for(true, 200));
  }
  EXPECT_TRUE(load.wait_for(false, 100));
  load.end_and_check();
  expect_even_accounts();
}

TEST_F(SystemQueueFaults, AnUpgradeLosesNoPickOfAQueue) {
  const std::uint64_t epoch = daemon_.status().daemon_epoch;
  QueueLoad load(client_, 2'000'000);
  EXPECT_TRUE(load.wait_for(false, 100));
  daemon_.stop();
  daemon_.start();
  EXPECT_NE(daemon_.status().daemon_epoch, epoch);
  EXPECT_TRUE(load.wait_for(false, 100));
  load.end_and_check();
  expect_even_accounts();
}

}  // namespace
}  // namespace pickd::systests

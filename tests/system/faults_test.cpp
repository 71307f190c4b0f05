// Faults under load, with real processes: the daemon is killed, stopped or replaced while threads
// pick all the time; clients hang. Every pick is answered, once, and the accounts come out even.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <set>

#include "tests/system/each_answers.hpp"
#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

constexpr std::size_t kPromptBytes = 8'192;
constexpr unsigned kPrompts = 32;
constexpr int kThreads = 6;

// Threads that pick and report until told to end. What could not be reported while the daemon was
// away is kept, to be reported once it is back.
class Load {
 public:
  Load(const Client& client, std::int64_t timeout_us) : client_(client), timeout_us_(timeout_us) {
    for (int at = 0; at < kThreads; ++at) workers_.push_back(std::make_unique<Worker>());
    for (auto& worker : workers_)
      worker->thread = std::thread([this, &own = *worker] { run(own); });
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { end(); }

  void end() {
    stop_ = true;
    for (auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
  }

  // Returns when every thread has had so many more answers of this kind.
  bool wait_for(bool degraded, std::uint64_t more) {
    return each_answers(workers_, degraded, more);
  }

  // After end(): each pick was answered with an endpoint, under a ticket of its own.
  void expect_all_answered() {
    std::set<std::uint64_t> sequences;
    std::size_t tickets = 0;
    for (auto& worker : workers_) {
      EXPECT_EQ(worker->failures, 0U) << pickd_strerror(worker->last_failure);
      EXPECT_EQ(worker->without_match, 0U) << "degraded picks of known prompts, without a match";
      tickets += worker->sequences.size();
      sequences.insert(worker->sequences.begin(), worker->sequences.end());
    }
    EXPECT_EQ(sequences.size(), tickets) << "a ticket was given twice";
  }

  // After end(), with a daemon: old tickets still work, and nothing stays in flight.
  void report_the_rest() {
    for (auto& worker : workers_) {
      for (const pickd_ticket ticket : worker->unreported) {
        const int code = client_.report(ticket, PICKD_REPORT_DONE);
        EXPECT_TRUE(code == 0 || code == -ESTALE) << pickd_strerror(code);
      }
    }
  }

 private:
  struct Worker {
    std::thread thread;
    std::atomic<std::uint64_t> by_daemon{0};
    std::atomic<std::uint64_t> degraded{0};
    std::uint64_t failures = 0;
    std::uint64_t without_match = 0;
    int last_failure = 0;
    std::vector<std::uint64_t> sequences;
    std::vector<pickd_ticket> unreported;

    std::uint64_t answers(bool of_degraded) const { return of_degraded ? degraded : by_daemon; }
  };

  void run(Worker& own) {
    const Result result;
    for (unsigned turn = 0; !stop_; ++turn) {
      const Request request(prompt_of(kPromptBytes, turn % kPrompts));
      const int code = pick(client_, request, result, timeout_us_);
      if (code != 0 || result.count() == 0) {
        ++own.failures;
        own.last_failure = code;
        continue;
      }
      own.sequences.push_back(result.ticket().sequence);
      if (result.degraded()) {
        // Its home may be dearer than another place; but somebody among the fallbacks has it.
        std::uint32_t match = 0;
        for (std::size_t at = 0; at < result.count(); ++at)
          match = std::max(match, result.match_tokens(at));
        own.without_match += match == 0 ? 1 : 0;
        ++own.degraded;
      } else {
        ++own.by_daemon;
      }
      pickd_report_info info = PICKD_REPORT_INIT;
      info.ticket = result.ticket();
      info.kind = PICKD_REPORT_DONE;
      if (pickd_report(client_.get(), &info, timeout_us_) != 0 && !result.degraded())
        own.unreported.push_back(result.ticket());
    }
  }

  const Client& client_;
  const std::int64_t timeout_us_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
};

void warm_up(const Client& client) {
  const Result result;
  for (unsigned seed = 0; seed < kPrompts; ++seed) {
    ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes, seed)), result), 0);
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
}

std::uint32_t match_of(const Client& client, unsigned seed) {
  const Result result;
  EXPECT_EQ(pick(client, Request(prompt_of(kPromptBytes, seed)), result), 0);
  EXPECT_FALSE(result.degraded());
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  return result.match_tokens();
}

TEST(SystemFaults, ADaemonKilledUnderLoadLosesNoPick) {
  Daemon daemon;
  const Client client(daemon);
  warm_up(client);
  Load load(client, 2'000'000);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(load.wait_for(false, 50));
    daemon.signal(SIGKILL);
    daemon.reap();
    EXPECT_TRUE(load.wait_for(true, 50));
    daemon.start();
  }
  EXPECT_TRUE(load.wait_for(false, 50)) << "the library is back by itself";
  load.end();
  load.expect_all_answered();
  load.report_the_rest();
  EXPECT_GT(match_of(client, 3), 0U) << "the warm store is used";
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << daemon.inflight();
}

TEST(SystemFaults, ADaemonThatStandsStillUnderLoadLosesNoPick) {
  Daemon daemon;
  const Client client(daemon);
  warm_up(client);
  Load load(client, 20'000);
  EXPECT_TRUE(load.wait_for(false, 50));
  {
    const Standstill standstill(daemon);
    EXPECT_TRUE(load.wait_for(true, 20));
  }
  EXPECT_TRUE(load.wait_for(false, 50));
  load.end();
  load.expect_all_answered();
  load.report_the_rest();
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << daemon.inflight();
}

TEST(SystemFaults, AnUpgradeUnderLoadLosesNoPick) {
  Daemon daemon;
  const Client client(daemon);
  warm_up(client);
  const std::uint64_t epoch = daemon.status().daemon_epoch;
  Load load(client, 2'000'000);
  EXPECT_TRUE(load.wait_for(false, 50));
  daemon.stop();
  daemon.start();
  EXPECT_NE(daemon.status().daemon_epoch, epoch);
  EXPECT_TRUE(load.wait_for(false, 50));
  load.end();
  load.expect_all_answered();
  load.report_the_rest();
  EXPECT_GT(match_of(client, 3), 0U);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << daemon.inflight();
}

TEST(SystemFaults, AnEmptyNewStateFileIsTakenOver) {
  Daemon daemon;
  const Client client(daemon);
  warm_up(client);
  daemon.stop();
  std::filesystem::remove(daemon.state());
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes, 1)), result), 0);
  EXPECT_GT(result.match_tokens(), 0U) << "the old file is still mapped";
  daemon.start();
  ASSERT_TRUE(eventually([&] {
    return pick(client, Request(prompt_of(kPromptBytes, 2)), result) == 0 && !result.degraded();
  }));
  EXPECT_EQ(result.match_tokens(), 0U) << "the new one is empty";
  daemon.signal(SIGKILL);
  daemon.reap();
  ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes, 1)), result), 0);
  EXPECT_TRUE(result.degraded());
  EXPECT_EQ(result.match_tokens(), 0U) << "and it is what is picked from now";
}

TEST(SystemFaults, AHungClientWithAFullCompletionRingCostsOnlyItself) {
  Daemon daemon;
  Forked hung([&daemon](Forked& self) {
    const Client client(daemon);
    pickd_queue* queue = nullptr;
    if (pickd_queue_open(client.get(), 4096, &queue) != 0) return 1;
    const Request request("hello");
    // Until nothing more goes in, and no answer is taken.
    int code = 0;
    std::uint64_t data = 0;
    while (code == 0) code = pickd_queue_submit(queue, &request.raw, data++, nullptr);
    if (code != -EAGAIN) return 2;
    self.say('f');
    return self.hear() == 'e' ? 0 : 3;
  });
  ASSERT_EQ(hung.hear(), 'f');
  hung.kill(SIGSTOP);
  const Client client(daemon);
  const Result result;
  for (unsigned turn = 0; turn < 2000; ++turn) {
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    ASSERT_FALSE(result.degraded());
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  hung.kill(SIGKILL);
  EXPECT_EQ(hung.wait(), -SIGKILL);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }))
      << "its reservations are released";
}

TEST(SystemFaults, SixtyFourThreadsAndManyPicksComeOutEven) {
  constexpr int kMany = 64;
  const bool is_long = std::getenv("LONG_TESTS") != nullptr;
  const std::uint64_t total = is_long ? 1'000'000 : 50'000;
  Daemon daemon;
  const Client client(daemon);
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint64_t>> sequences(kMany);
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> failures{0};
  for (std::vector<std::uint64_t>& own : sequences) {
    threads.emplace_back([&] {
      const Result result;
      for (std::uint64_t at; (at = begun++) < total;) {
        const Request request(prompt_of(512, static_cast<unsigned>(at % 1000)));
        if (pick(client, request, result) != 0 || result.degraded()) {
          ++failures;
          continue;
        }
        own.push_back(result.ticket().sequence);
        if (client.report(result.ticket(), PICKD_REPORT_DONE) != 0) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0U);
  std::vector<std::uint64_t> all;
  for (const auto& own : sequences) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "a ticket was given twice";
  EXPECT_EQ(all.size(), total);
  const StatusView status = daemon.status();
  EXPECT_EQ(status.counters.at("picks"), total);
  EXPECT_EQ(status.reservations, 0U);
  for (const auto& [name, endpoint] : daemon.endpoints()) {
    EXPECT_EQ(endpoint.inflight_requests, 0U) << name;
    EXPECT_EQ(endpoint.inflight_tokens, 0U) << name;
  }
}

}  // namespace
}  // namespace pickd::systests

// Deadlines against a daemon that stands still: what was not answered in time leaves nothing.
#include <atomic>
#include <cerrno>

#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

constexpr std::int64_t kShortUs = 50'000;

TEST(SystemDeadline, TakesBackAPickThatWasNotAnsweredInTime) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("warm up"), result), 0);
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  {
    const Standstill standstill(daemon);
    EXPECT_EQ(pick(client, Request(prompt_of(4000)), result, kShortUs), 0);
    EXPECT_TRUE(result.degraded()) << "answered by the library itself";
    EXPECT_EQ(pick(client, Request(prompt_of(4000)), result, 0), 0) << "0: no wait at all";
    EXPECT_TRUE(result.degraded());
  }
  // The daemon now finds both picks and both cancels, then this one.
  Request own(prompt_of(800, 3));
  ASSERT_EQ(pick(client, own.subset({"e3"}), result), 0);
  EXPECT_EQ(result.name(), "e3") << "its own answer, not a late one";
  EXPECT_EQ(pickd_result_prompt_tokens(result.get()), 200U);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 1; }));
  const StatusView status = daemon.status();
  EXPECT_EQ(status.reservations, 1U);
  EXPECT_EQ(status.counters.at("picks_cancelled"), 2U);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemDeadline, HoldsForReportsToo) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  pickd_report_info done = PICKD_REPORT_INIT;
  done.ticket = result.ticket();
  done.kind = PICKD_REPORT_DONE;
  {
    const Standstill standstill(daemon);
    EXPECT_EQ(pickd_report(client.get(), &done, kShortUs), -ETIMEDOUT);
  }
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << "it may yet be applied";
  EXPECT_EQ(pickd_report(client.get(), &done, kGenerousUs), -ESTALE);
}

TEST(SystemDeadline, HoldsForThreadsThatNeedAChannelOfTheirOwn) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  {
    const Standstill standstill(daemon);
    std::vector<std::thread> threads;
    std::atomic<int> late{0};
    for (int at = 0; at < 8; ++at) {
      threads.emplace_back([&] {
        const Result own;
        if (pick(client, Request("hello"), own, kShortUs) == 0 && own.degraded()) ++late;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(late.load(), 8);
  }
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 1; }));
  // Channels that were opened for nobody are closed with the next requests.
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int at = 0; at < 8; ++at) {
    threads.emplace_back([&] {
      const Result own;
      if (pick(client, Request("hello"), own) != 0) return;
      if (client.report(own.ticket(), PICKD_REPORT_DONE) == 0) ++answered;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered.load(), 8);
  EXPECT_EQ(daemon.inflight(), 1U);
  EXPECT_LE(daemon.status().channels, 9U);
}

TEST(SystemDeadline, HoldsForOpening) {
  Daemon daemon;
  daemon.status();  // connected before the standstill
  const Standstill standstill(daemon);
  const std::string socket = daemon.socket();
  pickd_options options = PICKD_OPTIONS_INIT;
  options.socket_path = socket.c_str();
  options.connect_timeout_ms = 50;
  pickd_client* client = nullptr;
  EXPECT_EQ(pickd_open(&options, &client), -ETIMEDOUT);
  EXPECT_EQ(client, nullptr);
}

}  // namespace
}  // namespace pickd::systests

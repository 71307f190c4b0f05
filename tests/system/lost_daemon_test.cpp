// What a daemon took with it when it was killed: answers that nobody had read, picks that it had
// not answered, reports that it had not applied. However many they are, nothing stays reserved for
// them once its client is connected again.
#include <cerrno>
#include <csignal>

#include "tests/system/queue.hpp"
#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

constexpr std::uint32_t kDepth = 4096;
constexpr std::uint64_t kMany = 3000;

void kill_and_reap(Daemon& daemon) {
  daemon.signal(SIGKILL);
  daemon.reap();
}

pickd_report_info done(pickd_ticket ticket) {
  pickd_report_info info = PICKD_REPORT_INIT;
  info.ticket = ticket;
  info.kind = PICKD_REPORT_DONE;
  return info;
}

// Picks until the daemon is back and nothing is in flight.
bool all_is_released(Daemon& daemon, const Client& client) {
  const Result result;
  return eventually([&] {
    EXPECT_EQ(pick(client, Request("hello"), result), 0) << client.last_error();
    client.report(result.ticket(), PICKD_REPORT_DONE);
    return daemon.inflight() == 0;
  });
}

// A daemon that has answered many picks of a queue, none of which was polled, and that is dead by
// now; the client has seen a newer answer and knows of the death.
class UnreadAnswers : public testing::Test {
 protected:
  void SetUp() override {
    const Request request("hello");
    for (std::uint64_t data = 0; data < kMany; ++data) {
      ASSERT_TRUE(eventually([&] { return queue_.submit(request, data) == 0; }));
    }
    const Result result;
    // Nobody polls the queue, so nobody rings for what stands in it: another channel's pick does.
    ASSERT_TRUE(eventually([&] {
      EXPECT_EQ(pick(client_, request, result), 0);
      EXPECT_EQ(client_.report(result.ticket(), PICKD_REPORT_DONE), 0);
      return daemon_.inflight() == kMany;
    })) << daemon_.inflight();
    kill_and_reap(daemon_);
    ASSERT_EQ(pick(client_, request, result), 0);
    ASSERT_TRUE(result.degraded());
  }

  Daemon daemon_{{.rest = "reservations: {per_uid_max: 0}"}};
  Client client_{daemon_};
  Queue queue_{client_, kDepth};
};

TEST_F(UnreadAnswers, AreGivenAllTheSameAndTheirTicketsAreGood) {
  ASSERT_EQ(queue_.submit(Request("hello"), kMany), 0) << "which finds the channel lost";
  const Result result;
  std::uint64_t data = 0;
  std::vector<pickd_ticket> tickets;
  for (std::uint64_t at = 0; at < kMany; ++at) {
    ASSERT_EQ(queue_.poll(result, &data), 1) << at;
    ASSERT_EQ(data, at);
    ASSERT_FALSE(result.degraded()) << at;
    ASSERT_EQ(result.count(), 4U);
    tickets.push_back(result.ticket());
  }
  ASSERT_EQ(queue_.poll(result, &data), 1);
  EXPECT_EQ(data, kMany);
  EXPECT_TRUE(result.degraded());
  EXPECT_EQ(queue_.report(done(result.ticket())), 0);
  EXPECT_EQ(queue_.poll(result, &data), 0);
  daemon_.start();
  for (const pickd_ticket ticket : tickets)
    ASSERT_EQ(client_.report(ticket, PICKD_REPORT_DONE), 0) << client_.last_error();
  EXPECT_EQ(daemon_.inflight(), 0U);
}

TEST_F(UnreadAnswers, OfAQueueThatIsClosedHoldNothing) {
  queue_.close();
  daemon_.start();
  ASSERT_EQ(daemon_.inflight(), kMany) << "a warm start";
  EXPECT_TRUE(all_is_released(daemon_, client_)) << daemon_.inflight();
}

TEST_F(UnreadAnswers, ThatAreCancelledHoldNothing) {
  ASSERT_EQ(queue_.submit(Request("hello"), kMany), 0) << "which finds the channel lost";
  const Result result;
  std::uint64_t data = 0;
  ASSERT_EQ(queue_.poll(result, &data), 1);
  const pickd_ticket first = result.ticket();
  for (std::uint64_t at = 1; at < kMany; ++at)
    ASSERT_EQ(pickd_queue_cancel(queue_.get(), {first.client, first.sequence + at}), 0) << at;
  ASSERT_EQ(queue_.poll(result, &data), 1);
  EXPECT_EQ(data, kMany);
  EXPECT_EQ(queue_.poll(result, &data), 0);
  daemon_.start();
  EXPECT_EQ(client_.report(first, PICKD_REPORT_DONE), 0);
  EXPECT_TRUE(all_is_released(daemon_, client_)) << daemon_.inflight();
}

TEST(SystemLostDaemon, ReleasesWhatItWasToldTheEndOfAndHadNotHeeded) {
  constexpr std::size_t kReports = 600;
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 16);
  const Result result;
  std::vector<pickd_ticket> tickets;
  for (std::size_t at = 0; at < 2 * kReports; ++at) {
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    tickets.push_back(result.ticket());
  }
  ASSERT_EQ(daemon.inflight(), tickets.size());
  {
    const Standstill standstill(daemon);
    for (std::size_t at = 0; at < kReports; ++at) {
      const pickd_report_info first = done(tickets[at]);
      ASSERT_EQ(pickd_report(client.get(), &first, 0), 0) << "handed over";
      ASSERT_EQ(queue.report(done(tickets[kReports + at])), 0) << "likewise, by the queue";
    }
    kill_and_reap(daemon);
    daemon.start();
  }
  ASSERT_EQ(daemon.inflight(), tickets.size()) << "a warm start";
  std::uint64_t data = 0;
  ASSERT_EQ(queue.submit(Request("hello"), 1), 0);
  ASSERT_TRUE(queue.next(result, &data));
  EXPECT_EQ(queue.report(done(result.ticket())), 0);
  EXPECT_TRUE(all_is_released(daemon, client)) << daemon.inflight();
}

TEST(SystemLostDaemon, ReleasesWhatEndedWhileThereWasNone) {
  constexpr std::size_t kRequests = 500;
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 16);
  const Result result;
  std::vector<pickd_ticket> tickets;
  for (std::size_t at = 0; at < 3 * kRequests; ++at) {
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    tickets.push_back(result.ticket());
  }
  kill_and_reap(daemon);
  for (std::size_t at = 0; at < kRequests; ++at) {
    const pickd_report_info first = done(tickets[at]);
    ASSERT_EQ(pickd_report(client.get(), &first, 0), 0);
    ASSERT_EQ(queue.report(done(tickets[kRequests + at])), 0);
    EXPECT_EQ(client.report(tickets[2 * kRequests + at], PICKD_REPORT_DONE), -ENOTCONN)
        << "who waits for the daemon's word is told that there is none";
  }
  pickd_report_info stranger = done({tickets[0].client + 1, tickets[0].sequence});
  EXPECT_EQ(queue.report(stranger), -ENOTCONN);
  EXPECT_EQ(pickd_report(client.get(), &stranger, 0), -ENOTCONN);
  daemon.start();
  ASSERT_EQ(daemon.inflight(), tickets.size()) << "a warm start";
  // The next calls tell of all; a report that went into the ring of a daemon whose death nobody had
  // noticed yet is found by those of its own kind.
  std::uint64_t data = 0;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(queue.submit(Request("hello"), 1), 0);
    EXPECT_TRUE(queue.next(result, &data));
    EXPECT_EQ(queue.report(done(result.ticket())), 0);
    EXPECT_EQ(pick(client, Request("hello"), result), 0);
    const pickd_report_info pooled = done(result.ticket());
    EXPECT_EQ(pickd_report(client.get(), &pooled, 0), 0);
    return daemon.inflight() == kRequests;
  })) << daemon.inflight();
  for (std::size_t at = 2 * kRequests; at < tickets.size(); ++at)
    ASSERT_EQ(client.report(tickets[at], PICKD_REPORT_DONE), 0) << "good again";
  EXPECT_EQ(daemon.inflight(), 0U);
}

}  // namespace
}  // namespace pickd::systests

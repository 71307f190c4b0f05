// Reports on tickets: each kind once, by whom they are accepted, and what they leave in flight.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr uid_t kNobody = 65534;

TEST(SystemReport, GivesBackTokensAtTheFirstTokenAndTheRequestAtItsEnd) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(4000)), result), 0);
  const auto held = [&] { return daemon.endpoints().at(result.name()); };
  EXPECT_EQ(held().inflight_requests, 1U);
  EXPECT_EQ(held().inflight_tokens, 1000U);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0);
  EXPECT_EQ(held().inflight_requests, 1U);
  EXPECT_EQ(held().inflight_tokens, 0U);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0) << "no fault, no effect";
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_PROGRESS), 0);
  EXPECT_EQ(held().inflight_tokens, 0U);

  pickd_report_info done = PICKD_REPORT_INIT;
  done.ticket = result.ticket();
  done.kind = PICKD_REPORT_DONE;
  done.prompt_tokens = 1003;
  done.cached_tokens = 17;
  done.output_tokens = 250;
  EXPECT_EQ(pickd_report(client.get(), &done, kGenerousUs), 0);
  EXPECT_EQ(held().inflight_requests, 0U);
  EXPECT_EQ(pickd_report(client.get(), &done, kGenerousUs), -ESTALE) << "applied once";
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_PROGRESS), -ESTALE);
  const StatusView status = daemon.status();
  EXPECT_EQ(status.reservations, 0U);
  EXPECT_EQ(status.counters.at("requests_done"), 1U);
  EXPECT_EQ(status.counters.at("reported_prompt_tokens"), 1003U);
  EXPECT_EQ(status.counters.at("reported_cached_tokens"), 17U);
  EXPECT_EQ(status.counters.at("output_tokens"), 250U);
  EXPECT_EQ(status.counters.at("reports_unknown"), 2U);
}

TEST(SystemReport, EndsARequestThatFailedOrWasCancelled) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  for (const pickd_report_kind kind : {PICKD_REPORT_FAILED, PICKD_REPORT_CANCELLED}) {
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    EXPECT_EQ(daemon.inflight(), 1U);
    EXPECT_EQ(client.report(result.ticket(), kind), 0);
    EXPECT_EQ(daemon.inflight(), 0U);
    EXPECT_EQ(client.report(result.ticket(), kind), -ESTALE);
  }
  EXPECT_EQ(daemon.counter("requests_failed"), 1U);
}

TEST(SystemReport, MovesARequestToAFallbackByNameAndByAddress) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  Request request(prompt_of(400));
  ASSERT_EQ(pick(client, request.subset({"e0"}), result), 0);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FALLBACK, "e2"), 0);
  EXPECT_EQ(daemon.endpoints().at("e0").inflight_requests, 0U);
  EXPECT_EQ(daemon.endpoints().at("e0").inflight_tokens, 0U);
  EXPECT_EQ(daemon.endpoints().at("e2").inflight_requests, 1U);
  EXPECT_EQ(daemon.endpoints().at("e2").inflight_tokens, 100U);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FALLBACK, "10.0.0.3:8000"), 0);
  EXPECT_EQ(daemon.endpoints().at("e2").inflight_requests, 0U);
  EXPECT_EQ(daemon.endpoints().at("e3").inflight_requests, 1U);

  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FALLBACK, "e9"), -ENOENT);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FALLBACK, ""), -EINVAL);
  EXPECT_EQ(daemon.endpoints().at("e3").inflight_requests, 1U) << "a bad report changes nothing";
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(daemon.inflight(), 0U);
  EXPECT_EQ(daemon.counter("requests_fallback"), 2U);
}

TEST(SystemReport, RefusesATicketThatWasNeverGiven) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  const pickd_ticket real = result.ticket();
  for (const pickd_ticket ticket :
       {pickd_ticket{0, 0}, pickd_ticket{real.client, real.sequence + 1000},
        pickd_ticket{real.client + 1, real.sequence}, pickd_ticket{UINT64_MAX, UINT64_MAX}}) {
    for (const auto kind : {PICKD_REPORT_DONE, PICKD_REPORT_FIRST_TOKEN, PICKD_REPORT_PROGRESS}) {
      EXPECT_EQ(client.report(ticket, kind), -ESTALE);
    }
    EXPECT_EQ(client.report(ticket, PICKD_REPORT_FALLBACK, "e1"), -ESTALE);
  }
  EXPECT_EQ(daemon.inflight(), 1U);
  EXPECT_EQ(daemon.counter("reports_unknown"), 16U);
}

// Field case 32: the caller leaves, the request is completed twice, an unknown one is completed.
// One decrement, on the endpoint that was picked, whoever has its name by then.
TEST(SystemReport, TakesOneOffThePickedEndpointHoweverOftenAndLateItIsEnded) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  Request at_e1("hello");
  at_e1.subset({"e1"});
  ASSERT_EQ(pick(client, at_e1, result), 0);
  const pickd_ticket held = result.ticket();
  ASSERT_EQ(pick(client, at_e1, result), 0);
  const pickd_ticket aborted = result.ticket();
  ASSERT_EQ(daemon.endpoints().at("e1").inflight_requests, 2U);
  EXPECT_EQ(client.report(aborted, PICKD_REPORT_CANCELLED), 0) << "the caller went away";
  EXPECT_EQ(client.report(aborted, PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(client.report(aborted, PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(client.report({aborted.client, aborted.sequence + 1000}, PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(client.report({0, 0}, PICKD_REPORT_FAILED), -ESTALE) << "never picked";
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 1U);
  // Another engine under the name: the old request's end is not its business.
  ASSERT_EQ(pickd_endpoint_remove(client.get(), "e1"), 0);
  ASSERT_EQ(client.add("e1", "10.9.9.9:8000"), 0);
  ASSERT_EQ(pick(client, at_e1, result), 0);
  EXPECT_EQ(client.report(held, PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 1U);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemReport, AppliesAReportThatNobodyWaitsFor) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  pickd_report_info done = PICKD_REPORT_INIT;
  done.ticket = result.ticket();
  done.kind = PICKD_REPORT_DONE;
  EXPECT_EQ(pickd_report(client.get(), &done, 0), 0);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
  EXPECT_EQ(pickd_report(client.get(), &done, 0), 0) << "handed over all the same";
  EXPECT_TRUE(eventually([&] { return daemon.counter("reports_unknown") == 1; }));
}

TEST(SystemReport, TakesATicketFromAnyConnectionOfTheSameUser) {
  Daemon daemon;
  const Client client(daemon);
  const Client other(daemon);
  Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  EXPECT_EQ(other.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0);
  EXPECT_EQ(other.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemReport, RefusesTheTicketOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\""}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  const Client client(daemon);
  Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  const pickd_ticket ticket = result.ticket();
  Forked stranger([&](Forked&) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    const Client own(daemon.socket());
    if (own.get() == nullptr) return 2;
    for (const auto kind : {PICKD_REPORT_DONE, PICKD_REPORT_FAILED, PICKD_REPORT_FIRST_TOKEN,
                            PICKD_REPORT_PROGRESS, PICKD_REPORT_CANCELLED}) {
      if (own.report(ticket, kind) != -EPERM) return 3;
    }
    if (own.report(ticket, PICKD_REPORT_FALLBACK, "e1") != -EPERM) return 4;
    // A stranger may pick, and report on its own.
    const Result mine;
    if (pick(own, Request("hello"), mine) != 0) return 5;
    return own.report(mine.ticket(), PICKD_REPORT_DONE) == 0 ? 0 : 6;
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(daemon.inflight(), 1U);
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_DONE), 0);
}

}  // namespace
}  // namespace pickd::systests

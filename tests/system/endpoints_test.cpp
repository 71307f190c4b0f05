// Changes to endpoints while the daemon runs: what each refuses, and what it makes of prefixes and
// counts.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr uid_t kNobody = 65534;

// What the prompt matches on one endpoint, without leaving a trace.
std::uint32_t match_on(const Client& client, const std::string& endpoint,
                       const std::string& prompt) {
  Request request(prompt);
  request.raw.flags = PICKD_REQUEST_DRY_RUN;
  const Result result;
  EXPECT_EQ(pick(client, request.subset({endpoint}), result), 0);
  return result.match_tokens();
}

// Sends the prompt to one endpoint; the request stays open.
pickd_ticket warm(const Client& client, const std::string& endpoint, const std::string& prompt) {
  Request request(prompt);
  const Result result;
  EXPECT_EQ(pick(client, request.subset({endpoint}), result), 0);
  return result.ticket();
}

int update(const Client& client, const std::string& name, const std::string& address) {
  pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  endpoint.name = name.c_str();
  endpoint.address = address.c_str();
  return pickd_endpoint_update(client.get(), &endpoint);
}

TEST(SystemEndpoints, RefusesDuplicatesAndUnknownNames) {
  Daemon daemon;
  const Client client(daemon);
  EXPECT_EQ(client.add("new", "10.9.0.1:1"), 0);
  EXPECT_EQ(client.add("new", "10.9.0.2:1"), -EEXIST);
  EXPECT_EQ(client.add("e0", "10.9.0.3:1"), -EEXIST) << "the file's names are taken, too";
  EXPECT_EQ(update(client, "nobody", "10.9.0.4:1"), -ENOENT);
  EXPECT_EQ(pickd_endpoint_remove(client.get(), "nobody"), -ENOENT);
  EXPECT_EQ(pickd_endpoint_drain(client.get(), "nobody", 1), -ENOENT);
  EXPECT_EQ(pickd_endpoint_reset(client.get(), "nobody"), -ENOENT);
  EXPECT_EQ(daemon.endpoints().size(), 5U);
  EXPECT_EQ(daemon.endpoints().at("new").address, "10.9.0.1:1");
}

TEST(SystemEndpoints, KeepsTheEndpointsOfAConnectionThatCloses) {
  Daemon daemon({.endpoints = 0});
  {
    const Client client(daemon);
    ASSERT_EQ(client.add("new", "10.9.0.1:1"), 0);
  }
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 1; }));
  const Client other(daemon);
  const Result result;
  EXPECT_EQ(pick(other, Request("hello"), result), 0);
  EXPECT_EQ(result.name(), "new");
}

TEST(SystemEndpoints, SaysThatTheTableIsFull) {
  Daemon daemon({.state = {"endpoints_max: 6"}});
  const Client client(daemon);
  EXPECT_EQ(client.add("a", "10.9.0.1:1"), 0);
  EXPECT_EQ(client.add("b", "10.9.0.2:1"), 0);
  EXPECT_EQ(client.add("c", "10.9.0.3:1"), -E2BIG);
  EXPECT_NE(client.last_error().find("state.endpoints_max"), std::string::npos)
      << client.last_error();
  ASSERT_EQ(pickd_endpoint_remove(client.get(), "e0"), 0);
  EXPECT_EQ(client.add("c", "10.9.0.3:1"), 0) << "a place that was given back is a place";
  EXPECT_EQ(client.add("d", "10.9.0.4:1"), -E2BIG);
}

TEST(SystemEndpoints, HoldsAsManyAsIdsCanName) {
  Daemon daemon({.endpoints = 4095});
  const Client client(daemon);
  EXPECT_EQ(client.add("one-more", "h:1"), -E2BIG);
  EXPECT_EQ(daemon.endpoints().size(), 4095U) << "paging loses none";
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0);
  Request request("hello");
  EXPECT_EQ(pick(client, request.subset({"e4094"}), result), 0);
  EXPECT_EQ(result.name(), "e4094");
}

TEST(SystemEndpoints, PicksNoMoreWhatWasRemoved) {
  Daemon daemon({.endpoints = 2});
  const Client client(daemon);
  const std::string prompt = prompt_of(4000);
  const pickd_ticket ticket = warm(client, "e1", prompt);
  ASSERT_EQ(pickd_endpoint_remove(client.get(), "e1"), 0);
  const Result result;
  for (int count = 0; count < 10; ++count) {
    ASSERT_EQ(pick(client, Request(prompt), result), 0);
    EXPECT_EQ(result.count(), 1U);
    EXPECT_EQ(result.name(), "e0");
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_DONE), -ESTALE) << "its endpoint is gone";
  ASSERT_EQ(pickd_endpoint_remove(client.get(), "e0"), 0);
  EXPECT_EQ(pick(client, Request(prompt), result), -EHOSTUNREACH);
  EXPECT_EQ(daemon.status().reservations, 0U);
}

TEST(SystemEndpoints, StartsFromNothingWhenANameComesBack) {
  // Field case 31: an old request's end must not count on the new life of its endpoint.
  Daemon daemon;
  const Client client(daemon);
  const std::string prompt = prompt_of(4000);
  const pickd_ticket old_ticket = warm(client, "e1", prompt);
  ASSERT_EQ(pickd_endpoint_remove(client.get(), "e1"), 0);
  ASSERT_EQ(client.add("e1", "10.0.0.1:8000"), 0);
  EXPECT_EQ(match_on(client, "e1", prompt), 0U);
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 0U);
  const pickd_ticket ticket = warm(client, "e1", prompt);
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 1U);
  EXPECT_EQ(client.report(old_ticket, PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 1U);
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_DONE), 0);
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 0U);
}

TEST(SystemEndpoints, DrainsAndTakesBack) {
  Daemon daemon({.endpoints = 2});
  const Client client(daemon);
  const std::string prompt = prompt_of(4000);
  const pickd_ticket ticket = warm(client, "e0", prompt);
  ASSERT_EQ(pickd_endpoint_drain(client.get(), "e0", 1), 0);
  const Result result;
  for (int count = 0; count < 10; ++count) {
    ASSERT_EQ(pick(client, Request(prompt_of(100, 9)), result), 0);
    EXPECT_EQ(result.name(), "e1");
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  Request request(prompt);
  EXPECT_EQ(pick(client, request.subset({"e0"}), result), -EHOSTUNREACH);
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_DONE), 0) << "what runs there ends as ever";
  ASSERT_EQ(pickd_endpoint_drain(client.get(), "e0", 0), 0);
  EXPECT_EQ(match_on(client, "e0", prompt), 1000U) << "draining forgets nothing";
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemEndpoints, ForgetsPrefixesAndCountsAtAReset) {
  Daemon daemon;
  const Client client(daemon);
  const std::string prompt = prompt_of(4000);
  const pickd_ticket ticket = warm(client, "e2", prompt);
  EXPECT_EQ(match_on(client, "e2", prompt), 1000U);
  ASSERT_EQ(pickd_endpoint_reset(client.get(), "e2"), 0);
  EXPECT_EQ(match_on(client, "e2", prompt), 0U);
  EXPECT_EQ(daemon.endpoints().at("e2").inflight_requests, 0U);
  EXPECT_EQ(daemon.endpoints().at("e2").inflight_tokens, 0U);
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_DONE), -ESTALE);
  warm(client, "e2", prompt);
  EXPECT_EQ(match_on(client, "e2", prompt), 1000U) << "and learns anew at once";
}

TEST(SystemEndpoints, TakesANewAddressForANewEngine) {
  // Field case 25: P1 moves to another address, then P2 gets the one it had.
  Daemon daemon({.endpoints = 0});
  const Client client(daemon);
  ASSERT_EQ(client.add("p1", "10.0.0.5:8000"), 0);
  const std::string prompt = prompt_of(4000);
  warm(client, "p1", prompt);
  EXPECT_EQ(update(client, "p1", "10.0.0.5:8000"), 0);
  EXPECT_EQ(match_on(client, "p1", prompt), 1000U) << "the same engine";
  EXPECT_EQ(daemon.endpoints().at("p1").inflight_requests, 1U);

  EXPECT_EQ(update(client, "p1", "10.0.0.9:8000"), 0);
  EXPECT_EQ(match_on(client, "p1", prompt), 0U);
  EXPECT_EQ(daemon.endpoints().at("p1").inflight_requests, 0U);
  warm(client, "p1", prompt);
  ASSERT_EQ(client.add("p2", "10.0.0.5:8000"), 0);
  EXPECT_EQ(match_on(client, "p2", prompt), 0U);
  EXPECT_EQ(match_on(client, "p1", prompt), 1000U);
  EXPECT_EQ(daemon.endpoints().size(), 2U);
  const Result result;
  Request request(prompt);
  ASSERT_EQ(pick(client, request.subset({"10.0.0.5:8000"}), result), 0);
  EXPECT_EQ(result.count(), 1U) << "the old address is not p1's any more";
  EXPECT_EQ(result.name(), "p2");
}

TEST(SystemEndpoints, ChangesNothingForUsersWithoutPermission) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\""}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  const auto before = daemon.endpoints();
  Forked stranger([&](Forked&) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    const Client own(daemon.socket());
    if (own.get() == nullptr) return 2;
    if (own.add("new", "10.9.0.1:1") != -EPERM) return 3;
    if (update(own, "e0", "10.9.0.1:1") != -EPERM) return 4;
    if (pickd_endpoint_remove(own.get(), "e0") != -EPERM) return 5;
    if (pickd_endpoint_drain(own.get(), "e0", 1) != -EPERM) return 6;
    if (pickd_endpoint_reset(own.get(), "e0") != -EPERM) return 7;
    return own.last_error().find("listen.admin_uids") != std::string::npos ? 0 : 8;
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(daemon.endpoints(), before);
  EXPECT_EQ(daemon.counter("control_refused"), 5U);
}

TEST(SystemEndpoints, LetsTheListedUsersChangeThemAndNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\"", "admin_uids: [65534]"}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  const Client root(daemon);
  EXPECT_EQ(root.add("new", "10.9.0.1:1"), -EPERM) << "the list says who may, root or not";
  Forked listed([&](Forked&) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    const Client own(daemon.socket());
    return own.add("new", "10.9.0.1:1") == 0 ? 0 : 2;
  });
  EXPECT_EQ(listed.wait(), 0);
  EXPECT_EQ(daemon.endpoints().count("new"), 1U);
}

}  // namespace
}  // namespace pickd::systests

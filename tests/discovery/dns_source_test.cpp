// The DNS source against a real server on a loopback port.
#include "daemon/discovery/dns_source.hpp"

#include "tests/discovery/support.hpp"
#include "tests/net/dns_server.hpp"

namespace pickd::discovery::test {
namespace {

using nettests::DnsServer;
using nettests::kServfail;
using nettests::kTypeA;
using nettests::kTypeAaaa;
using nettests::kTypeSrv;
using Addresses = Heard::Addresses;
using Type = config::DnsDiscoveryConfig::Type;

class DnsSourceTest : public ::testing::Test {
 protected:
  DnsSourceTest() {
    config_.name = "vllm.example";
    config_.port = 8000;
    config_.servers = {server_.address()};
    config_.ttl_min_ms = 20;
    config_.ttl_max_ms = 50;
    config_.timeout_ms = 60'000;
  }
  void start() {
    running_ = std::make_unique<Running>([&](net::Reactor& reactor) -> std::unique_ptr<Source> {
      auto resolver = net::Resolver::create(reactor, {config_.servers, config_.timeout_ms});
      if (!resolver) throw std::runtime_error(resolver.error().text);
      return std::make_unique<DnsSource>(reactor, std::move(*resolver), config_, heard_.hooks());
    });
  }
  // Waits until the server was asked so many times more.
  bool asked_again(int times, int type = kTypeA) {
    const int from = server_.asked("vllm.example", type);
    return eventually([&] { return server_.asked("vllm.example", type) >= from + times; });
  }

  DnsServer server_;
  config::DnsDiscoveryConfig config_;
  Heard heard_;
  std::unique_ptr<Running> running_;
};

TEST_F(DnsSourceTest, MakesAnEndpointOfEachAddress) {
  server_.set("vllm.example", kTypeA,
              {.records = {DnsServer::a("10.0.0.2"), DnsServer::a("10.0.0.1")}});
  start();
  EXPECT_TRUE(
      heard_.becomes({{"10.0.0.1:8000", "10.0.0.1:8000"}, {"10.0.0.2:8000", "10.0.0.2:8000"}}));
}

TEST_F(DnsSourceTest, ReplacesTheSetWithEachAnswer) {
  server_.set("vllm.example", kTypeA,
              {.records = {DnsServer::a("10.0.0.1"), DnsServer::a("10.0.0.2")}});
  start();
  ASSERT_TRUE(eventually([&] { return heard_.set().size() == 2; }));
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.2")}});
  EXPECT_TRUE(heard_.becomes({{"10.0.0.2:8000", "10.0.0.2:8000"}}));
}

TEST_F(DnsSourceTest, WritesIpv6AddressesInBrackets) {
  config_.type = Type::kBoth;
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  server_.set("vllm.example", kTypeAaaa, {.records = {DnsServer::aaaa("fd00::1")}});
  start();
  EXPECT_TRUE(
      heard_.becomes({{"10.0.0.1:8000", "10.0.0.1:8000"}, {"[fd00::1]:8000", "[fd00::1]:8000"}}));
}

TEST_F(DnsSourceTest, KeepsTheSetWhileTheServerFails) {
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  start();
  ASSERT_TRUE(heard_.becomes({{"10.0.0.1:8000", "10.0.0.1:8000"}}));
  server_.set("vllm.example", kTypeA, {.rcode = kServfail});
  ASSERT_TRUE(heard_.says("the endpoints of before stay"));
  ASSERT_TRUE(asked_again(3)) << "it goes on asking";
  EXPECT_EQ(heard_.addresses(), (Addresses{{"10.0.0.1:8000", "10.0.0.1:8000"}}));
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.2")}});
  EXPECT_TRUE(heard_.becomes({{"10.0.0.2:8000", "10.0.0.2:8000"}}));
  EXPECT_TRUE(eventually([&] { return heard_.trouble().empty(); }));
}

TEST_F(DnsSourceTest, EmptiesTheSetWhenTheServerSaysThatThereIsNone) {
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  start();
  ASSERT_TRUE(heard_.becomes({{"10.0.0.1:8000", "10.0.0.1:8000"}}));
  server_.set("vllm.example", kTypeA, {.rcode = nettests::kNxdomain});
  EXPECT_TRUE(heard_.becomes({}));
  EXPECT_EQ(heard_.trouble(), "");
}

TEST_F(DnsSourceTest, KeepsTheSetWhenOnlyOneOfTwoQuestionsIsAnswered) {
  config_.type = Type::kBoth;
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  server_.set("vllm.example", kTypeAaaa, {.records = {DnsServer::aaaa("fd00::1")}});
  start();
  ASSERT_TRUE(eventually([&] { return heard_.set().size() == 2; }));
  server_.set("vllm.example", kTypeAaaa, {.rcode = kServfail});
  ASSERT_TRUE(heard_.says("stay"));
  EXPECT_EQ(heard_.set().size(), 2U);
}

TEST_F(DnsSourceTest, NamesServicesByTheirTargets) {
  config_.type = Type::kSrv;
  server_.set("vllm.example", kTypeSrv,
              {.records = {DnsServer::srv("pod-0.vllm.example", 8000, 60, 1, 5),
                           DnsServer::srv("pod-1.vllm.example", 8001)}});
  server_.set("pod-0.vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  server_.set("pod-1.vllm.example", kTypeA, {});
  server_.set("pod-1.vllm.example", kTypeAaaa, {.records = {DnsServer::aaaa("fd00::2")}});
  start();
  ASSERT_TRUE(heard_.becomes({{"pod-0.vllm.example:8000", "10.0.0.1:8000"},
                              {"pod-1.vllm.example:8001", "[fd00::2]:8001"}}));
  EXPECT_EQ(heard_.set()[0].labels[0].second, "1") << "the priority";
  server_.set("pod-0.vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.9")}});
  EXPECT_TRUE(heard_.becomes({{"pod-0.vllm.example:8000", "10.0.0.9:8000"},
                              {"pod-1.vllm.example:8001", "[fd00::2]:8001"}}))
      << "the name stays when the pod gets another address";
}

TEST_F(DnsSourceTest, LeavesOutAServiceWhoseTargetIsNotThereButNotOneThatCannotBeAsked) {
  config_.type = Type::kSrv;
  server_.set("vllm.example", kTypeSrv,
              {.records = {DnsServer::srv("pod-0.vllm.example", 8000),
                           DnsServer::srv("pod-1.vllm.example", 8000)}});
  server_.set("pod-0.vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  start();
  ASSERT_TRUE(heard_.becomes({{"pod-0.vllm.example:8000", "10.0.0.1:8000"}}));
  server_.set("pod-0.vllm.example", kTypeA, {.rcode = kServfail});
  ASSERT_TRUE(heard_.says("pod-0.vllm.example.: "));
  EXPECT_EQ(heard_.set().size(), 1U);
}

TEST_F(DnsSourceTest, GivesNoNewSetForAnAnswerThatIsOnlyShuffled) {
  server_.set("vllm.example", kTypeA,
              {.records = {DnsServer::a("10.0.0.1"), DnsServer::a("10.0.0.2")}});
  start();
  ASSERT_TRUE(eventually([&] { return heard_.set().size() == 2; }));
  const auto before = heard_.set();
  server_.set("vllm.example", kTypeA,
              {.records = {DnsServer::a("10.0.0.2"), DnsServer::a("10.0.0.1")}});
  const int sets = heard_.sets();
  ASSERT_TRUE(eventually([&] { return heard_.sets() >= sets + 3; }));
  EXPECT_EQ(heard_.set(), before);
}

TEST_F(DnsSourceTest, AsksNoSoonerThanTheTtlAndTheFloorAllow) {
  // A TTL of 0 asks at ttl_min, one of an hour at ttl_max: the server sees both being asked again.
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1", 3600)}});
  start();
  EXPECT_TRUE(asked_again(3)) << "ttl_max holds";
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1", 0)}});
  EXPECT_TRUE(asked_again(3)) << "ttl_min holds";
}

TEST_F(DnsSourceTest, AsksOnlyOnceWithinATtlThatIsAllowed) {
  config_.ttl_min_ms = 20;
  config_.ttl_max_ms = 86'400'000;
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1", 3600)}});
  start();
  ASSERT_TRUE(heard_.becomes({{"10.0.0.1:8000", "10.0.0.1:8000"}}));
  running_.reset();
  EXPECT_EQ(server_.asked("vllm.example", kTypeA), 1);
}

}  // namespace
}  // namespace pickd::discovery::test

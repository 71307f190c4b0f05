// The resolver against a real server on a loopback port.
#include "daemon/net/resolver.hpp"

#include <gtest/gtest.h>

#include "tests/net/dns_server.hpp"

namespace pickd::net {
namespace {

using nettests::DnsServer;
using nettests::kServfail;
using nettests::kTypeA;
using nettests::kTypeAaaa;
using nettests::kTypeSrv;
using Status = DnsAnswer::Status;

class ResolverTest : public ::testing::Test {
 protected:
  ResolverTest() {
    auto reactor = make_epoll_reactor();
    if (!reactor) throw std::runtime_error(reactor.error().text);
    reactor_ = std::move(*reactor);
    make(ResolverOptions{{server_.address()}, 60'000});
  }
  void make(const ResolverOptions& options) {
    resolver_.reset();
    auto made = Resolver::create(*reactor_, options);
    if (!made) throw std::runtime_error(made.error().text);
    resolver_ = std::move(*made);
  }
  Resolver::Handler take(DnsAnswer& into) {
    return [this, &into](const DnsAnswer& answer) {
      into = answer;
      reactor_->stop();
    };
  }
  DnsAnswer ask(const std::string& name, DnsType type) {
    DnsAnswer answer;
    resolver_->ask(name, type, take(answer));
    reactor_->run();
    return answer;
  }
  DnsAnswer ask_addresses(const std::string& host) {
    DnsAnswer answer;
    resolver_->ask_addresses(host, take(answer));
    reactor_->run();
    return answer;
  }

  DnsServer server_;
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<Resolver> resolver_;
};

std::vector<std::string> addresses(const DnsAnswer& answer) {
  std::vector<std::string> out;
  for (const DnsRecord& record : answer.records) out.push_back(record.address);
  return out;
}

TEST_F(ResolverTest, FindsTheAddressesOfANameWithTheLowestTtl) {
  server_.set("vllm.example", kTypeA,
              {.records = {DnsServer::a("10.0.0.1", 30), DnsServer::a("10.0.0.2", 12)}});
  const DnsAnswer answer = ask("vllm.example", DnsType::kA);
  EXPECT_EQ(answer.status, Status::kFound) << answer.error;
  EXPECT_EQ(addresses(answer), (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  EXPECT_EQ(answer.ttl_s, 12U);
}

TEST_F(ResolverTest, FindsIpv6Addresses) {
  server_.set("vllm.example", kTypeAaaa, {.records = {DnsServer::aaaa("fd00::17", 30)}});
  const DnsAnswer answer = ask("vllm.example", DnsType::kAaaa);
  EXPECT_EQ(addresses(answer), (std::vector<std::string>{"fd00::17"})) << answer.error;
}

TEST_F(ResolverTest, FindsServicesWithTargetsPortsAndPriorities) {
  server_.set("_http._tcp.vllm.example", kTypeSrv,
              {.records = {DnsServer::srv("pod-0.vllm.example", 8000, 30, 1, 5),
                           DnsServer::srv("pod-1.vllm.example", 8001, 20, 2, 7)}});
  const DnsAnswer answer = ask("_http._tcp.vllm.example", DnsType::kSrv);
  ASSERT_EQ(answer.status, Status::kFound) << answer.error;
  ASSERT_EQ(answer.records.size(), 2U);
  EXPECT_EQ(answer.records[0], (DnsRecord{"", "pod-0.vllm.example", 8000, 1, 5}));
  EXPECT_EQ(answer.records[1], (DnsRecord{"", "pod-1.vllm.example", 8001, 2, 7}));
  EXPECT_EQ(answer.ttl_s, 20U);
}

TEST_F(ResolverTest, CountsTheTtlOfTheNamesOnTheWay) {
  server_.set("vllm.example", kTypeA,
              {.records = {DnsServer::cname("other.example", 3), DnsServer::a("10.0.0.1", 30)}});
  EXPECT_EQ(ask("vllm.example", DnsType::kA).ttl_s, 3U);
}

TEST_F(ResolverTest, TellsANameThatIsNotThereFromAServerThatFails) {
  EXPECT_EQ(ask("nobody.example", DnsType::kA).status, Status::kNone);
}

TEST_F(ResolverTest, TakesANameWithoutRecordsOfTheTypeForNone) {
  server_.set("vllm.example", kTypeA, {});
  EXPECT_EQ(ask("vllm.example", DnsType::kA).status, Status::kNone);
}

TEST_F(ResolverTest, SaysThatTheServerFailed) {
  server_.set("vllm.example", kTypeA, {.rcode = kServfail});
  const DnsAnswer answer = ask("vllm.example", DnsType::kA);
  EXPECT_EQ(answer.status, Status::kFailed);
  EXPECT_NE(answer.error, "");
}

TEST_F(ResolverTest, SaysThatNobodyAnsweredInTime) {
  server_.set("vllm.example", kTypeA, {.silent = true});
  make(ResolverOptions{{server_.address()}, 200});
  const DnsAnswer answer = ask("vllm.example", DnsType::kA);
  EXPECT_EQ(answer.status, Status::kFailed);
  EXPECT_EQ(answer.error, "no answer within 200 ms");
  EXPECT_GE(server_.asked("vllm.example", kTypeA), 2) << "one lost packet is not the end";
}

TEST_F(ResolverTest, AsksOverTcpForWhatDoesNotFitAPacket) {
  DnsServer::Answer many{.truncated = true};
  for (int at = 0; at < 500; ++at)
    many.records.push_back(
        DnsServer::a("10.1." + std::to_string(at / 250) + "." + std::to_string(at % 250)));
  server_.set("vllm.example", kTypeA, many);
  EXPECT_EQ(ask("vllm.example", DnsType::kA).records.size(), 500U);
  EXPECT_EQ(server_.asked_over_tcp(), 1);
}

TEST_F(ResolverTest, TakesBytesThatAreNoAnswerForAFailure) {
  server_.set("vllm.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}, .garbage = true});
  make(ResolverOptions{{server_.address()}, 500});
  EXPECT_EQ(ask("vllm.example", DnsType::kA).status, Status::kFailed);
}

TEST_F(ResolverTest, CallsNobodyAfterACancel) {
  server_.set("a.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  server_.set("b.example", kTypeA, {.records = {DnsServer::a("10.0.0.2")}});
  bool called = false;
  const auto first = resolver_->ask("a.example", DnsType::kA, [&](const auto&) { called = true; });
  const auto literal = resolver_->ask_addresses("10.0.0.3", [&](const auto&) { called = true; });
  resolver_->cancel(first);
  resolver_->cancel(literal);
  resolver_->cancel(first);  // no mistake
  EXPECT_EQ(addresses(ask("b.example", DnsType::kA)), (std::vector<std::string>{"10.0.0.2"}));
  EXPECT_FALSE(called);
}

TEST_F(ResolverTest, MayEndWithQuestionsOpen) {
  server_.set("a.example", kTypeA, {.silent = true});
  bool called = false;
  resolver_->ask("a.example", DnsType::kA, [&](const auto&) { called = true; });
  resolver_.reset();
  reactor_->after(0, [this] { reactor_->stop(); });
  reactor_->run();
  EXPECT_FALSE(called);
}

TEST_F(ResolverTest, MayBeEndedByItsOwnHandler) {
  server_.set("a.example", kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
  resolver_->ask("a.example", DnsType::kA, [this](const auto&) {
    resolver_.reset();
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_EQ(resolver_, nullptr);
}

TEST_F(ResolverTest, HandsOutLiteralAddressesWithoutAsking) {
  EXPECT_EQ(addresses(ask_addresses("10.0.0.9")), (std::vector<std::string>{"10.0.0.9"}));
}

TEST_F(ResolverTest, TakesTheBracketsFromAnIpv6Address) {
  EXPECT_EQ(addresses(ask_addresses("[fd00::9]")), (std::vector<std::string>{"fd00::9"}));
}

TEST_F(ResolverTest, ReadsTheHostsFileForConnections) {
  const DnsAnswer answer = ask_addresses("localhost");
  ASSERT_EQ(answer.status, Status::kFound);
  EXPECT_EQ(answer.records[0].address, "127.0.0.1");
  EXPECT_EQ(server_.asked("localhost", kTypeA), 0);
}

TEST_F(ResolverTest, AsksForIpv6WhenAConnectionHasNoIpv4Address) {
  server_.set("six.example", kTypeA, {});
  server_.set("six.example", kTypeAaaa, {.records = {DnsServer::aaaa("fd00::6")}});
  EXPECT_EQ(addresses(ask_addresses("six.example")), (std::vector<std::string>{"fd00::6"}));
}

TEST_F(ResolverTest, AnswersManyQuestionsAtOnce) {
  constexpr int kQuestions = 500;
  int answered = 0;
  for (int at = 0; at < kQuestions; ++at) {
    const std::string name = "n" + std::to_string(at) + ".example";
    server_.set(name, kTypeA, {.records = {DnsServer::a("10.0.0.1")}});
    resolver_->ask(name, DnsType::kA, [&](const DnsAnswer& answer) {
      EXPECT_EQ(answer.status, Status::kFound) << answer.error;
      if (++answered == kQuestions) reactor_->stop();
    });
  }
  reactor_->run();
  EXPECT_EQ(answered, kQuestions);
}

TEST_F(ResolverTest, RefusesNamesThatCannotBe) {
  EXPECT_EQ(ask(std::string(300, 'a'), DnsType::kA).status, Status::kFailed);
}

TEST(Resolver, RefusesServersThatAreNoAddresses) {
  auto reactor = make_epoll_reactor();
  ASSERT_TRUE(reactor.ok());
  const auto made = Resolver::create(**reactor, {{"not an address"}, 1000});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().text.find("such as 10.96.0.10:53"), std::string::npos);
}

// ---- The bytes ----------------------------------------------------------------------------------

base::Result<DnsAnswer> read(const std::string& bytes, DnsType type = DnsType::kA) {
  return read_dns_answer({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, type);
}

TEST(DnsAnswer, IsNeverReadBeyondItsEnd) {
  const std::string question = DnsServer::question("a.example", kTypeSrv);
  const std::string whole =
      DnsServer::message(1, question, {.records = {DnsServer::srv("pod.example", 8000)}}, false);
  ASSERT_TRUE(read(whole, DnsType::kSrv).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read(whole.substr(0, size), DnsType::kSrv).ok()) << size;
  }
}

TEST(DnsAnswer, RefusesNamesThatAreLongerThanNamesCanBe) {
  const std::string question = DnsServer::question("a.example", kTypeSrv);
  const auto read_with = [&](const std::string& target) {
    return read(DnsServer::message(1, question, {.records = {DnsServer::srv(target, 8000)}}, false),
                DnsType::kSrv);
  };
  const std::string label = std::string(61, 'a') + ".";  // 62 bytes on the wire
  const std::string four = label + label + label + label;
  auto longest = read_with(four + std::string(5, 'b'));
  ASSERT_TRUE(longest.ok()) << "255 bytes: 4 * 62, 6, and the end";
  EXPECT_EQ(longest->records.at(0).target, four + std::string(5, 'b'));
  EXPECT_FALSE(read_with(four + std::string(6, 'b')).ok());
  // Written as \ddd, so longer as text.
  EXPECT_TRUE(read_with(four + std::string(5, '\x11')).ok());
  EXPECT_FALSE(read_with(four + std::string(6, '\x11')).ok());
}

TEST(DnsAnswer, RefusesNamesThatPointInCircles) {
  DnsServer::Answer answer{.records = {DnsServer::a("10.0.0.1")}};
  std::string message =
      DnsServer::message(1, DnsServer::question("a.example", kTypeA), answer, false);
  message[12] = '\xC0';  // the question's name points to itself
  message[13] = '\x0C';
  EXPECT_FALSE(read(message).ok());
}

// An answer has room for thousands of names that each lead through thousands of pointers.
TEST(DnsAnswer, FollowsNoNameThroughManyPointers) {
  const std::string question = DnsServer::question("a.example", kTypeSrv);
  const auto message = [&](int pointers) {
    std::string target = DnsServer::srv("x", 8000).data.substr(0, 6);
    // Of the first record's data: behind the head, the question, and the record's own head.
    std::size_t at = 12 + question.size() + 12 + target.size() + 2;
    target += std::string("\xC0\x0C");  // as a whole a name: that of the question
    for (int count = 0; count < pointers; ++count, at += 2) {
      const std::size_t before = at - 2;
      target += static_cast<char>(0xC0 | before >> 8);
      target += static_cast<char>(before & 0xFF);
    }
    const std::size_t last = at - 2;
    DnsServer::Record chain{16, 60, target};  // what it holds is nobody's matter
    DnsServer::Record service{kTypeSrv, 60, target.substr(0, 6)};
    service.data += static_cast<char>(0xC0 | last >> 8);
    service.data += static_cast<char>(last & 0xFF);
    return DnsServer::message(1, question, {.records = {chain, service}}, false);
  };
  auto few = read(message(10), DnsType::kSrv);
  ASSERT_TRUE(few.ok()) << few.error().text;
  EXPECT_EQ(few->records.at(0).target, "a.example");
  EXPECT_FALSE(read(message(1000), DnsType::kSrv).ok());
}

TEST(DnsAnswer, DoesNotTakeNamesThatLeadInACircleForNone) {
  const std::string question = DnsServer::question("a.example", kTypeA);
  const DnsServer::Answer circle{
      .records = {DnsServer::cname("b.example"), DnsServer::cname("a.example")}};
  std::string message = DnsServer::message(1, question, circle, false);
  auto read_circle = read(message);
  ASSERT_FALSE(read_circle.ok()) << "there may be endpoints: nobody said that there are none";
  EXPECT_NE(read_circle.error().text.find("leads to other names"), std::string::npos);
  // With the authority's word it is none.
  const std::string denial =
      DnsServer::message(1, "", {.records = {{6, 60, std::string(22, '\0')}}}, false);
  message[9] = 1;
  EXPECT_EQ(read(message + denial.substr(12))->status, Status::kNone);
}

TEST(DnsAnswer, RefusesAnAddressOfTheWrongLength) {
  DnsServer::Record odd = DnsServer::a("10.0.0.1");
  odd.data += 'x';
  EXPECT_FALSE(read(DnsServer::message(1, DnsServer::question("a.example", kTypeA),
                                       {.records = {odd}}, false))
                   .ok());
}

TEST(DnsAnswer, TakesATtlWithTheHighestBitForNone) {
  const auto answer =
      read(DnsServer::message(1, DnsServer::question("a.example", kTypeA),
                              {.records = {DnsServer::a("1.2.3.4", 0x80000001)}}, false));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value().ttl_s, 0U);
}

}  // namespace
}  // namespace pickd::net

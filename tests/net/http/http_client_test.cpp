// The client against real sockets that behave: connections kept, time-outs, names, tokens.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "daemon/net/resolver.hpp"
#include "tests/net/http/client_fixture.hpp"

namespace pickd::net::http::test {
namespace {

TEST_F(HttpClientTest, AsksOnOneConnectionAgainAndAgain) {
  std::mutex mutex;
  std::vector<std::string> requests;
  const ScriptServer server([&](Peer& peer, int) {
    while (true) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      {
        const std::lock_guard lock(mutex);
        requests.push_back(request);
      }
      peer.answer("page");
    }
  });
  make_client(server.url("/metrics?x=1"));
  for (int i = 0; i < 5; ++i) {
    Recorder sink;
    const Outcome outcome = ask(sink);
    EXPECT_TRUE(outcome.ok()) << outcome.text;
    EXPECT_EQ(outcome.text, "");
    EXPECT_EQ(outcome.reused, i > 0);
    EXPECT_TRUE(outcome.sent_all);
    EXPECT_EQ(sink.text, "page");
  }
  EXPECT_EQ(server.accepted(), 1);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(requests.at(0),
            "GET /metrics?x=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                "\r\nUser-Agent: pickd\r\nAccept: */*\r\n"
                "Accept-Encoding: identity\r\n\r\n");
}

TEST_F(HttpClientTest, SendsTheRequestsOwnTargetAndFields) {
  std::string seen;
  const ScriptServer server([&](Peer& peer, int) {
    seen = peer.read_request();
    peer.answer("");
  });
  make_client(server.url());
  request_.target = "/api/v1?watch=true";
  request_.accept = "application/json";
  request_.fields = {{"X-One", "1"}};
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(seen.rfind("GET /api/v1?watch=true HTTP/1.1\r\n", 0), 0U) << seen;
  EXPECT_NE(seen.find("\r\nAccept: application/json\r\n"), std::string::npos);
  EXPECT_NE(seen.find("\r\nX-One: 1\r\n"), std::string::npos);
}

TEST_F(HttpClientTest, ReadsABigPageInPieces) {
  const std::string page(4 * 1024 * 1024, 'p');
  const ScriptServer server([&](Peer& peer, int) {
    peer.read_request();
    peer.answer(page);
  });
  make_client(server.url());
  Recorder sink;
  sink.keep = false;
  EXPECT_TRUE(ask(sink).ok());
  EXPECT_EQ(sink.bytes, page.size());
  EXPECT_LE(sink.largest, 64U * 1024) << "the page was buffered";
}

TEST_F(HttpClientTest, ConnectsOverIpv6) {
  const ScriptServer server(
      [](Peer& peer, int) {
        peer.read_request();
        peer.answer("six");
      },
      AF_INET6);
  if (!server.bound()) GTEST_SKIP() << "no IPv6 on this machine's loopback";
  make_client("http://[::1]:" + std::to_string(server.port()) + "/");
  Recorder sink;
  EXPECT_TRUE(ask(sink).ok());
  EXPECT_EQ(sink.text, "six");
}

TEST_F(HttpClientTest, FindsNamesThroughTheResolver) {
  const ScriptServer server([](Peer& peer, int) {
    peer.read_request();
    peer.answer("named");
  });
  std::unique_ptr<Resolver> resolver;
  loop_.run([&] {
    auto made = Resolver::create(loop_.reactor(), {});
    if (made) resolver = std::move(*made);
  });
  ASSERT_NE(resolver, nullptr);
  options_.resolver = resolver.get();
  make_client("http://localhost:" + std::to_string(server.port()) + "/");
  Recorder sink;
  const Outcome outcome = ask(sink);
  EXPECT_TRUE(outcome.ok()) << outcome.text;
  EXPECT_EQ(sink.text, "named");
  loop_.run([&] {
    client_.reset();
    resolver.reset();
  });
}

TEST_F(HttpClientTest, SaysThatANameNeedsAResolver) {
  make_client("http://localhost:1/");
  const Outcome outcome = ask();
  EXPECT_EQ(outcome.failure, Failure::kResolve);
  EXPECT_EQ(outcome.text,
            "http://localhost:1/: name not found, must be an address here, not a name");
}

// Else an engine would count as dead because this process has no descriptor left for it.
TEST_F(HttpClientTest, TellsWhatThisMachineLacksFromAFailureOfTheOther) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer opens pipes to look at objects' types";
#endif
  const ScriptServer server([](Peer& peer, int) { peer.read_request(); });
  make_client("http://127.0.0.1:" + std::to_string(server.port()) + "/");
  rlimit whole{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &whole), 0);
  int next = -1;
  {
    const base::Fd lowest(::dup(0));
    next = lowest.get();
  }
  const rlimit tight{static_cast<rlim_t>(next), whole.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const Outcome outcome = ask();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &whole), 0);
  EXPECT_EQ(outcome.failure, Failure::kNoResources) << outcome.text;
  EXPECT_NE(outcome.text.find("no resources here, Too many open files"), std::string::npos)
      << outcome.text;
}

TEST_F(HttpClientTest, TellsARefusedConnection) {
  std::uint16_t port = 0;
  {
    const ScriptServer gone([](Peer&, int) {});
    port = gone.port();
  }
  make_client("http://127.0.0.1:" + std::to_string(port) + "/");
  const Outcome outcome = ask();
  EXPECT_EQ(outcome.failure, Failure::kConnect);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.text.find("no connection, Connection refused"), std::string::npos)
      << outcome.text;
}

TEST_F(HttpClientTest, ReplacesAKeptConnectionThatTheServerClosed) {
  const ScriptServer server([](Peer& peer, int) {
    peer.read_request();
    peer.answer("once");
  });
  make_client(server.url());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ask().ok()) << i;
  EXPECT_EQ(server.accepted(), 4);
}

TEST_F(HttpClientTest, RetriesOnceWhenTheServerClosesOnTheNextRequest) {
  const ScriptServer server([](Peer& peer, int) {
    peer.read_request();
    peer.answer("once");
    peer.read_request();  // and then, as if its idle time had just ended, away
    peer.reset();
  });
  make_client(server.url());
  EXPECT_TRUE(ask().ok());
  const Outcome second = ask();
  EXPECT_TRUE(second.ok()) << second.text;
  EXPECT_FALSE(second.reused);
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpClientTest, DoesNotRetryOnAFreshConnection) {
  const ScriptServer server([](Peer& peer, int) {
    peer.read_request();
    peer.reset();
  });
  make_client(server.url());
  EXPECT_EQ(ask().failure, Failure::kReset);
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(HttpClientTest, DoesNotUseAConnectionThatWasIdleForLong) {
  const ScriptServer server([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("x");
  });
  options_.keep_alive_ms = 0;
  make_client(server.url());
  EXPECT_TRUE(ask().ok());
  EXPECT_TRUE(ask().ok());
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpClientTest, EndsAWatchByCancelAndAsksAgain) {
  const std::string event = "400\r\n" + std::string(0x400, 'e') + "\r\n";
  const ScriptServer server([&](Peer& peer, int) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.send(event)) {
    }
  });
  make_client(server.url());
  request_.idle_timeout_ms = 0;
  request_.body_bytes_max = 0;
  for (int i = 0; i < 3; ++i) {
    Recorder sink;
    std::promise<void> much;
    sink.keep = false;
    sink.on_body = [&, told = false]() mutable {
      if (!told && sink.bytes > 8 * 1024 * 1024) {
        told = true;
        much.set_value();
      }
      return true;
    };
    loop_.run([&] { client_->get(request_, sink); });
    much.get_future().wait();
    loop_.run([&] {
      client_->cancel();
      EXPECT_FALSE(client_->busy());
    });
    EXPECT_EQ(sink.dones, 0);
  }
}

TEST_F(HttpClientTest, MayBeDestroyedOrUsedAgainInsideDone) {
  const ScriptServer server([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("x");
  });
  make_client(server.url());
  Recorder sink;
  std::promise<void> over;
  sink.on_done = [&] {
    if (sink.dones < 3) return client_->get(request_, sink);
    client_.reset();
    over.set_value();
  };
  loop_.run([&] { client_->get(request_, sink); });
  over.get_future().wait();
  EXPECT_EQ(sink.text, "xxx");
  EXPECT_EQ(server.accepted(), 1);
}

class BearerTokenTest : public HttpClientTest {
 protected:
  void SetUp() override {
    HttpClientTest::SetUp();
    path_ = ::testing::TempDir() + "/token." + std::to_string(::getpid());
    write("first\n");
  }
  void TearDown() override {
    HttpClientTest::TearDown();
    ::unlink(path_.c_str());
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string path_;
};

TEST_F(BearerTokenTest, IsSentAndReadAgainAfterUnauthorized) {
  std::mutex mutex;
  std::string good = "first";
  std::vector<std::string> tokens;
  const ScriptServer server([&](Peer& peer, int) {
    while (true) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      const std::string field = "\r\nAuthorization: Bearer ";
      const std::size_t at = request.find(field);
      const std::size_t from = at + field.size();
      const std::string token =
          at == std::string::npos ? "" : request.substr(from, request.find('\r', from) - from);
      const std::lock_guard lock(mutex);
      tokens.push_back(token);
      const bool right = token == good;
      peer.answer(right ? "in" : "out", "", right ? 200 : 401);
    }
  });
  options_.token = std::make_shared<BearerToken>(path_);
  make_client(server.url());
  EXPECT_TRUE(ask().ok());
  write("second");
  {
    const std::lock_guard lock(mutex);
    good = "second";
  }
  Recorder sink;
  EXPECT_TRUE(ask(sink).ok());
  EXPECT_EQ(sink.heads, 1) << "the 401 in between is nobody's business";
  EXPECT_EQ(sink.text, "in");
  {
    const std::lock_guard lock(mutex);
    good = "third";
  }
  Recorder refused;
  const Outcome outcome = ask(refused);
  EXPECT_EQ(outcome.failure, Failure::kNone);
  EXPECT_EQ(outcome.status, 401);
  EXPECT_EQ(refused.text, "out");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(tokens.front(), "first");
  EXPECT_EQ(tokens.back(), "second");
}

TEST_F(BearerTokenTest, TakesOneTokenOfVisibleCharactersOnly) {
  BearerToken token(path_);
  std::uint64_t now_ns = 1;
  EXPECT_EQ(token.value(now_ns), "first");
  for (const char* text : {"", "\n", "two words", "line\r\nX-Evil: 1", "\x80"}) {
    write(text);
    token.refresh(now_ns);
    EXPECT_EQ(token.value(now_ns), "") << text;
  }
  write(std::string(16 * 1024 + 1, 't'));
  EXPECT_FALSE(token.refresh(now_ns));
  write("good \r\n");
  EXPECT_TRUE(token.refresh(now_ns));
  EXPECT_EQ(token.value(now_ns), "good");
  ::unlink(path_.c_str());
  EXPECT_EQ(token.value(now_ns), "good") << "looked at too often";
  now_ns += 2'000'000'000;
  EXPECT_EQ(token.value(now_ns), "");
}

}  // namespace
}  // namespace pickd::net::http::test

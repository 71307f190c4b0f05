// The client against servers that hang, reset, flood and lie: each ends with its reason.
#include "tests/net/http/client_fixture.hpp"

namespace pickd::net::http::test {
namespace {

constexpr std::uint64_t kSoonMs = 100;

class BadServers : public HttpClientTest {
 protected:
  Outcome against(const ScriptServer::Script& script) {
    const ScriptServer server(script);
    make_client(server.url());
    const Outcome outcome = ask();
    // Whatever happened, the next one is asked on a connection that knows nothing of it.
    loop_.run([this] { client_.reset(); });
    return outcome;
  }
  static bool start(Peer& peer, const char* head = "Transfer-Encoding: chunked\r\n") {
    peer.read_request();
    return peer.send(std::string("HTTP/1.1 200 OK\r\n") + head + "\r\n");
  }
};

TEST_F(BadServers, ThatAcceptAndNeverAnswerTimeOut) {
  request_.idle_timeout_ms = kSoonMs;
  const Outcome outcome = against([](Peer& peer, int) {
    peer.read_request();
    peer.wait();
  });
  EXPECT_EQ(outcome.failure, Failure::kTimeout);
  EXPECT_NE(outcome.text.find(": timed out, no byte for 100 ms"), std::string::npos);
}

TEST_F(BadServers, ThatStopHalfWayTimeOut) {
  request_.idle_timeout_ms = kSoonMs;
  const Outcome outcome = against([](Peer& peer, int) {
    start(peer, "Content-Length: 100\r\n");
    peer.send("half");
    peer.wait();
  });
  EXPECT_EQ(outcome.failure, Failure::kTimeout);
  EXPECT_EQ(outcome.status, 200);
}

TEST_F(BadServers, ThatDripTakeTooLong) {
  request_.idle_timeout_ms = 60'000;
  request_.total_timeout_ms = 2 * kSoonMs;
  const Outcome outcome = against([](Peer& peer, int) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n");
    pollfd quiet{peer.fd(), POLLIN, 0};
    while (::poll(&quiet, 1, 5) == 0 && peer.send("X: y\r\n")) {  // slow-loris
    }
  });
  EXPECT_EQ(outcome.failure, Failure::kTotalTimeout);
}

TEST_F(BadServers, WhoseHandshakeNeverEndsTimeOut) {
  auto tls = TlsContext::create({.skip_verify = true});
  ASSERT_TRUE(tls.ok());
  options_.tls = *tls;
  options_.connect_timeout_ms = kSoonMs;
  const ScriptServer server([](Peer& peer, int) {
    while (peer.wait()) {
      char bytes[4096];
      if (::recv(peer.fd(), bytes, sizeof bytes, 0) <= 0) return;
    }
  });
  make_client("https://127.0.0.1:" + std::to_string(server.port()) + "/");
  EXPECT_EQ(ask().failure, Failure::kConnectTimeout);
}

TEST_F(BadServers, ThatResetAreTold) {
  EXPECT_EQ(against([](Peer& peer, int) {
              peer.read_request();
              peer.reset();
            }).failure,
            Failure::kReset);
  EXPECT_EQ(against([](Peer& peer, int) {
              start(peer);
              peer.send("4\r\nhalf\r\n");
              peer.reset();
            }).failure,
            Failure::kReset);
  EXPECT_EQ(against([](Peer& peer, int) {
              start(peer, "Content-Length: 100\r\n");
              peer.send("half");
            }).failure,
            Failure::kReset);
}

TEST_F(BadServers, ThatAnswer500AreNoFailureOfTheConnection) {
  const ScriptServer server([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("sorry", "", 500);
  });
  make_client(server.url());
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = ask();
    EXPECT_EQ(outcome.failure, Failure::kNone);
    EXPECT_EQ(outcome.status, 500);
    EXPECT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.text, server.url() + ": status 500");
  }
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(BadServers, ThatSendWithoutEndAreCutOff) {
  request_.body_bytes_max = 1024 * 1024;
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  EXPECT_EQ(against([&](Peer& peer, int) {
              start(peer);
              while (peer.send(chunk)) {
              }
            }).failure,
            Failure::kBodyTooLarge);
  EXPECT_EQ(against([&](Peer& peer, int) {
              start(peer, "Connection: close\r\n");
              while (peer.send(chunk)) {
              }
            }).failure,
            Failure::kBodyTooLarge);
  EXPECT_EQ(against([&](Peer& peer, int) {
              peer.read_request();
              peer.send("HTTP/1.1 200 OK\r\n");
              while (peer.send("X-Flood: yes\r\n")) {
              }
            }).failure,
            Failure::kHeadTooLarge);
}

TEST_F(BadServers, ThatSendGarbageAreTold) {
  EXPECT_EQ(against([](Peer& peer, int) {
              peer.read_request();
              peer.send("SSH-2.0-OpenSSH_9.2\r\n");
              peer.wait();
            }).failure,
            Failure::kMalformed);
  EXPECT_EQ(against([](Peer& peer, int) {
              peer.read_request();
              peer.send(std::string(100'000, '\xFF'));
            }).failure,
            Failure::kMalformed);
}

TEST_F(BadServers, ThatSendElsewhereOrCompressAreRefused) {
  EXPECT_EQ(against([](Peer& peer, int) {
              peer.read_request();
              peer.answer("", "Location: http://169.254.169.254/\r\n", 302);
            }).failure,
            Failure::kRedirect);
  EXPECT_EQ(against([](Peer& peer, int) {
              peer.read_request();
              peer.answer("\x1F\x8B", "Content-Encoding: gzip\r\n");
            }).failure,
            Failure::kEncoded);
}

TEST_F(BadServers, ThatSpeakUnaskedLoseTheConnection) {
  const ScriptServer server([](Peer& peer, int) {
    peer.read_request();
    peer.answer("page");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    peer.read_request();
  });
  make_client(server.url());
  for (int i = 0; i < 3; ++i) {
    Recorder sink;
    EXPECT_TRUE(ask(sink).ok());
    // The unasked answer may come with the first one, before the next request, or behind it: in
    // the last case nobody can tell it from an answer, but it is never read twice.
    EXPECT_TRUE(sink.text == "page" || sink.text == "evil");
  }
}

TEST_F(BadServers, DoNotKeepTheOthersWaiting) {
  // One that floods and one that hangs, while a third is asked many times.
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  const ScriptServer flooding([&](Peer& peer, int) {
    start(peer);
    while (peer.send(chunk)) {
    }
  });
  const ScriptServer hanging([](Peer& peer, int) {
    peer.read_request();
    peer.wait();
  });
  const ScriptServer good([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("page");
  });
  Request endless;
  endless.idle_timeout_ms = 0;
  endless.total_timeout_ms = 0;
  endless.body_bytes_max = 0;
  Recorder flood;
  Recorder hang;
  flood.keep = false;
  std::unique_ptr<HttpClient> first;
  std::unique_ptr<HttpClient> second;
  loop_.run([&] {
    first = std::make_unique<HttpClient>(loop_.reactor(), *parse_url(flooding.url()), options_);
    second = std::make_unique<HttpClient>(loop_.reactor(), *parse_url(hanging.url()), options_);
    first->get(endless, flood);
    second->get(endless, hang);
  });
  make_client(good.url());
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(ask().ok());
  loop_.run([&] {
    EXPECT_GT(flood.bytes, 0U);
    EXPECT_EQ(flood.dones + hang.dones, 0);
    first.reset();
    second.reset();
  });
}

}  // namespace
}  // namespace pickd::net::http::test

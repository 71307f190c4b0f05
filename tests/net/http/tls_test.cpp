// TLS: whom the client believes, and whom not.
#include <csignal>

#include "tests/net/http/tls_fixture.hpp"

namespace pickd::net::http::test {
namespace {

class Tls : public HttpClientTest {
 protected:
  void SetUp() override {
    HttpClientTest::SetUp();
    ::signal(SIGPIPE, SIG_IGN);  // the server's side writes with write(2)
  }
  Outcome ask_with(const TlsSettings& settings, const char* names, int version_max = TLS1_3_VERSION,
                   std::size_t times = 1, long valid_s = 3600) {
    const Certificates certificates(names, valid_s);
    const TlsPeer side(certificates, version_max);
    std::mutex mutex;
    const std::string page(300'000, 's');
    const ScriptServer server([&](Peer& peer, int) {
      const std::string name = side.serve(peer, page);
      const std::lock_guard lock(mutex);
      asked_for_ = name;
    });
    TlsSettings used = settings;
    if (used.ca_file == "own") used.ca_file = certificates.ca_file();
    auto context = TlsContext::create(used);
    EXPECT_TRUE(context.ok());
    if (!context) return {};
    options_.tls = *context;
    make_client("https://127.0.0.1:" + std::to_string(server.port()) + "/metrics");
    Outcome outcome;
    for (std::size_t i = 0; i < times; ++i) {
      Recorder sink;
      outcome = ask(sink);
      EXPECT_EQ(sink.text == page, outcome.ok());
      EXPECT_EQ(outcome.reused, outcome.ok() && i > 0);
    }
    loop_.run([this] { client_.reset(); });
    return outcome;
  }

  std::string asked_for_;
};

TEST_F(Tls, BelievesACertificateOfTheAuthorityForTheAddress) {
  const Outcome outcome = ask_with({.ca_file = "own"}, "IP:127.0.0.1", TLS1_3_VERSION, 3);
  EXPECT_TRUE(outcome.ok()) << outcome.text;
}

TEST_F(Tls, SpeaksVersion12) {
  const Outcome outcome = ask_with({.ca_file = "own"}, "IP:127.0.0.1", TLS1_2_VERSION, 2);
  EXPECT_TRUE(outcome.ok()) << outcome.text;
}

TEST_F(Tls, RefusesACertificateWhoseTimeIsOver) {
  const Outcome outcome = ask_with({.ca_file = "own"}, "IP:127.0.0.1", TLS1_3_VERSION, 1, -60);
  EXPECT_EQ(outcome.failure, Failure::kTls) << outcome.text;
  EXPECT_NE(outcome.text.find("expired"), std::string::npos) << outcome.text;
}

TEST_F(Tls, RefusesVersionsBefore12) {
  const Outcome outcome = ask_with({.ca_file = "own"}, "IP:127.0.0.1", TLS1_1_VERSION);
  EXPECT_EQ(outcome.failure, Failure::kTls) << outcome.text;
}

TEST_F(Tls, AsksForTheConfiguredName) {
  const Outcome outcome =
      ask_with({.ca_file = "own", .server_name = "engine.test"}, "DNS:engine.test");
  EXPECT_TRUE(outcome.ok()) << outcome.text;
  EXPECT_EQ(asked_for_, "engine.test");
}

TEST_F(Tls, RefusesACertificateForSomebodyElse) {
  const Outcome address = ask_with({.ca_file = "own"}, "IP:127.0.0.2,DNS:localhost");
  EXPECT_EQ(address.failure, Failure::kTls);
  EXPECT_NE(address.text.find("IP address mismatch"), std::string::npos) << address.text;
  const Outcome name = ask_with({.ca_file = "own", .server_name = "engine.test"}, "DNS:other.test");
  EXPECT_EQ(name.failure, Failure::kTls);
  EXPECT_NE(name.text.find("hostname mismatch"), std::string::npos) << name.text;
}

TEST_F(Tls, RefusesAnUnknownAuthorityUnlessToldNotToLook) {
  const Outcome refused = ask_with({}, "IP:127.0.0.1");
  EXPECT_EQ(refused.failure, Failure::kTls);
  EXPECT_NE(refused.text.find("certificate verify failed"), std::string::npos) << refused.text;
  const Outcome taken = ask_with({.skip_verify = true}, "DNS:somebody.else");
  EXPECT_TRUE(taken.ok()) << taken.text;
}

TEST_F(Tls, TellsAServerThatSpeaksPlainHttp) {
  const ScriptServer server([](Peer& peer, int) { peer.answer("plain"); });
  options_.tls = *TlsContext::create({.skip_verify = true});
  make_client("https://127.0.0.1:" + std::to_string(server.port()) + "/");
  EXPECT_EQ(ask().failure, Failure::kTls);
}

TEST_F(Tls, NeedsSettingsForHttps) {
  make_client("https://127.0.0.1:1/");
  EXPECT_EQ(ask().failure, Failure::kTls);
}

TEST(TlsContext, SaysWhatIsWrongWithACaFile) {
  const auto absent = TlsContext::create({.ca_file = "/nonexistent/ca.pem"});
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().text.find("/nonexistent/ca.pem must hold certificates in PEM"),
            std::string::npos)
      << absent.error().text;
  EXPECT_FALSE(TlsContext::create({.ca_file = "/proc/self/cmdline"}).ok());
}

}  // namespace
}  // namespace pickd::net::http::test

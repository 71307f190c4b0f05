// The daemon and real engines: load read from their pages, a killed one passed over, a restarted
// one taken for another.
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <set>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr std::uint8_t kReady = 1;

// An enginesim. Slow, so that what runs there still runs when somebody looks.
class Engine {
 public:
  explicit Engine(const std::string& port = "0") { start(port); }

  void start(const std::string& port) {
    auto started = tools::Child::start(
        {PICKD_BINARY_DIR "/bin/enginesim", "--port", port, "--model", "m", "--blocks", "1000",
         "--block-size", "16", "--max-num-seqs", "2", "--decode-sequence-seconds", "0.5"},
        {.read_output = true, .error_file = ""});
    ASSERT_TRUE(started.ok()) << started.error().text;
    child_ = std::move(*started);
    auto told = child_.wait_for_line("listening on ", kGenerous);
    ASSERT_TRUE(told.ok()) << told.error().text;
    port_ = *told;
  }
  // Sends a request that runs for minutes; the answer is not waited for.
  void ask() {
    base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port_)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string body = R"({"model": "m", "prompt": ")" + std::string(4000, 'p') +
                             R"(", "max_tokens": 2000, "stream": true})";
    const std::string request =
        "POST /v1/completions HTTP/1.1\r\nHost: e\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    ASSERT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    asked_.push_back(std::move(socket));
  }
  void kill() {
    child_.signal(SIGKILL);
    child_.stop(std::chrono::milliseconds(0));
    asked_.clear();
  }
  void hang() const { child_.signal(SIGSTOP); }
  void go_on() const { child_.signal(SIGCONT); }
  const std::string& port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + port_; }

 private:
  tools::Child child_;
  std::string port_;
  std::vector<base::Fd> asked_;
};

class SystemScrape : public ::testing::Test {
 protected:
  void start(const std::string& more = "") {
    std::string rest = "scrape: {interval: 100ms, timeout: 300ms" + more + "}\nendpoints:\n";
    for (std::size_t at = 0; at < engines_.size(); ++at) {
      rest +=
          "  - {name: e" + std::to_string(at) + ", address: \"" + engines_[at].address() + "\"}\n";
    }
    daemon_.emplace(Settings{.rest = rest, .endpoints = 0});
  }
  bool all_ready() {
    const auto now = daemon_->endpoints();
    return std::all_of(now.begin(), now.end(),
                       [](const auto& one) { return one.second.state == kReady; });
  }
  bool ready(const std::string& name) { return daemon_->endpoints().at(name).state == kReady; }
  nlohmann::json shown(const std::string& name) const {
    const Ended ended = run("pickctl", {"--socket", daemon_->socket(), "endpoints", "--json"});
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    const auto all = nlohmann::json::parse(ended.output);
    for (const auto& one : all.is_array() ? all : all.at("endpoints")) {
      if (one.at("name") == name) return one;
    }
    ADD_FAILURE() << "no " << name << " in " << ended.output;
    return {};
  }
  std::set<std::string> picked(int times) {
    const Client client(*daemon_);
    std::set<std::string> names;
    for (int at = 0; at < times; ++at) {
      Request request("prompt " + std::to_string(at));
      Result result;
      EXPECT_EQ(pick(client, request, result), 0);
      names.insert(result.name());
      EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
    }
    return names;
  }

  std::vector<Engine> engines_ = std::vector<Engine>(3);
  std::optional<Daemon> daemon_;
};

TEST_F(SystemScrape, ShowsTheLoadOfRealEngines) {
  for (int at = 0; at < 5; ++at) engines_[0].ask();
  start();
  ASSERT_TRUE(eventually([this] { return all_ready(); }));
  ASSERT_TRUE(eventually([this] {
    const auto one = shown("e0");
    return one.at("running") == 2 && one.at("waiting") == 3 && one.at("kv_use_ppm") > 0;
  })) << shown("e0");
  const auto one = shown("e0");
  EXPECT_EQ(one.at("engine"), "vllm");
  EXPECT_EQ(one.at("state"), "ready");
  EXPECT_EQ(one.at("scrape_failures"), 0);
  EXPECT_EQ(shown("e1").at("running"), 0);
  EXPECT_GE(daemon_->counter("scrapes"), 3U);
  EXPECT_EQ(daemon_->counter("scrapes_no_connection"), 0U);
}

TEST_F(SystemScrape, PassesOverAKilledEngineAndTakesTheNextOneForAnother) {
  engines_[1].ask();  // so that its counters have somewhere to go back from
  start();
  ASSERT_TRUE(eventually([this] { return all_ready() && shown("e1").at("running") == 1; }));
  const std::uint32_t generation = daemon_->endpoints().at("e1").generation;
  engines_[1].kill();
  ASSERT_TRUE(eventually([this] { return !ready("e1"); }));
  EXPECT_EQ(picked(100), (std::set<std::string>{"e0", "e2"}));
  ASSERT_TRUE(eventually([this] { return shown("e1").at("scrape_failures") >= 3; }));
  EXPECT_NE(shown("e1").at("why_not_ready"), "");
  engines_[1].start(engines_[1].port());
  ASSERT_TRUE(eventually([this] { return ready("e1"); }));
  EXPECT_TRUE(eventually([&] { return daemon_->endpoints().at("e1").generation > generation; }));
  EXPECT_EQ(picked(200), (std::set<std::string>{"e0", "e1", "e2"}));
  EXPECT_EQ(daemon_->counter("engines_restarted"), 1U);
}

TEST_F(SystemScrape, PassesOverAnEngineThatHangsUntilItGoesOn) {
  start();
  ASSERT_TRUE(eventually([this] { return all_ready(); }));
  engines_[2].hang();
  ASSERT_TRUE(eventually([this] { return !ready("e2"); }));
  EXPECT_EQ(picked(100), (std::set<std::string>{"e0", "e1"}));
  EXPECT_GE(daemon_->counter("scrapes_timed_out"), 1U);
  const std::uint32_t generation = daemon_->endpoints().at("e2").generation;
  engines_[2].go_on();
  ASSERT_TRUE(eventually([this] { return ready("e2"); }));
  EXPECT_EQ(daemon_->endpoints().at("e2").generation, generation) << "it is the same engine";
}

TEST_F(SystemScrape, WatchesAnEngineThatPickctlAdds) {
  daemon_.emplace(Settings{.rest = "scrape: {interval: 100ms, timeout: 300ms}\n", .endpoints = 0});
  const auto add = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"--socket", daemon_->socket(), "add"});
    return run("pickctl", words).exit_code;
  };
  engines_[0].ask();
  const std::string nobody = engines_[1].address();
  engines_[1].kill();
  EXPECT_EQ(add({"there", engines_[0].address()}), 0);
  EXPECT_EQ(add({"url", "http://" + engines_[2].address() + "/v1"}), 0);
  EXPECT_EQ(add({"nobody", nobody}), 0);
  ASSERT_TRUE(eventually([this] {
    return ready("there") && ready("url") && shown("there").at("running") == 1;
  })) << shown("there");
  EXPECT_FALSE(ready("nobody"));
  EXPECT_FALSE(picked(50).contains("nobody"));
  EXPECT_EQ(add({"unseen", nobody, "--no-scrape"}), 0);
  EXPECT_TRUE(ready("unseen"));
  EXPECT_EQ(add({"unseen2", "unix://engine", "--update"}), 2) << "whose metrics are where?";
}

// Field case 49, with a port a rank: one of them must never stand for all.
TEST_F(SystemScrape, AddsUpTheRanksOfAnEngineThatIsOneEndpoint) {
  for (int at = 0; at < 3; ++at) engines_[0].ask();
  for (int at = 0; at < 4; ++at) engines_[2].ask();
  std::string ports;
  for (const Engine& engine : engines_) ports += (ports.empty() ? "" : ", ") + engine.port();
  daemon_.emplace(Settings{.rest = "scrape: {interval: 100ms, timeout: 300ms}\n"
                                   "pools:\n  - name: p\n    ranks: {as: one, ports: [" +
                                   ports + "]}\n    endpoints: [{name: dp, address: \"" +
                                   engines_[0].address() + "\"}]\n",
                           .endpoints = 0});
  ASSERT_TRUE(eventually([this] {
    const auto dp = shown("dp");
    return dp.at("running") == 4 && dp.at("waiting") == 3;
  })) << shown("dp");
  EXPECT_EQ(daemon_->endpoints().size(), 1U);
  const std::uint32_t generation = daemon_->endpoints().at("dp").generation;
  const std::string port = engines_[1].port();
  engines_[1].kill();
  ASSERT_TRUE(eventually([this] { return !ready("dp"); }));
  engines_[1].start(port);
  ASSERT_TRUE(eventually([&] {
    return ready("dp") && daemon_->endpoints().at("dp").generation > generation;
  })) << "one rank that begins anew has lost its cache";
}

// Field case 58.
TEST_F(SystemScrape, WarnsOfAStalenessBelowTwoIntervals) {
  start(", stale: 150ms");
  EXPECT_NE(daemon_->log().find("scrape.stale: 150 ms is less than two intervals of 100 ms"),
            std::string::npos)
      << daemon_->log();
}

}  // namespace
}  // namespace pickd::systests

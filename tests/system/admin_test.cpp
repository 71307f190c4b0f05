// The admin listener of a real daemon: what it serves, whom it refuses, and that it harms nobody.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = " HTTP/1.1\r\nHost: localhost\r\n\r\n";

Settings with_admin(const std::string& more = "") {
  Settings settings;
  settings.rest = "admin:\n  listen: \"127.0.0.1:0\"\n" + more;
  return settings;
}

std::uint16_t port_of(const Daemon& daemon) {
  const std::string log = daemon.log();
  const std::string mark = "admin: http://127.0.0.1:";
  const std::size_t at = log.find(mark);
  return at == std::string::npos
             ? std::uint16_t{0}
             : static_cast<std::uint16_t>(std::stoi(log.substr(at + mark.size())));
}

class Connection {
 public:
  explicit Connection(const Daemon& daemon) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(daemon));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    join(reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  explicit Connection(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    join(reinterpret_cast<sockaddr*>(&address), sizeof address);
  }

  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // One answer, by its length; of HEAD without a body. Empty: the connection ended before.
  std::string answer(bool head_only = false) {
    std::size_t end = std::string::npos;
    while ((end = bytes_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return "";
    }
    end += 4;
    const std::size_t field = bytes_.find("Content-Length: ");
    const std::size_t length =
        head_only ? 0 : static_cast<std::size_t>(std::stoul(bytes_.substr(field + 16)));
    while (bytes_.size() < end + length) {
      if (!more()) return "";
    }
    const std::string answer = bytes_.substr(0, end + length);
    bytes_.erase(0, end + length);
    return answer;
  }
  // Whether the other side closes it, within a generous time.
  bool ends() {
    while (more()) {
    }
    return ended_;
  }

 private:
  void join(const sockaddr* address, socklen_t size) {
    const timeval patience{kGenerous.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(socket_.get(), address, size), 0);
  }
  bool more() {
    char bytes[4096];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    ended_ = got == 0 || (got < 0 && errno == ECONNRESET);
    if (got <= 0) return false;
    bytes_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  base::Fd socket_;
  std::string bytes_;
  bool ended_ = false;
};

std::string get(const Daemon& daemon, const std::string& path) {
  Connection connection(daemon);
  connection.send("GET " + path + kGet);
  return connection.answer();
}

std::string body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

// A sample by its name and labels.
double sample(const Daemon& daemon, const std::string& name) {
  const std::string page = body_of(get(daemon, "/metrics"));
  const std::size_t at = page.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size() + 2));
}

TEST(AdminListener, IsOffUnlessConfigured) {
  Daemon daemon;
  EXPECT_THAT(daemon.log(), Not(HasSubstr("admin")));
}

TEST(AdminListener, CountsPicksByReasonEndpointAndSize) {
  Daemon daemon(with_admin());
  Client client(daemon);
  Request request(prompt_of(4096));
  for (int count = 0; count < 3; ++count) {
    Result result;
    ASSERT_EQ(pick(client, request, result), 0);
  }
  // A worker counts these behind the answer.
  EXPECT_TRUE(eventually([&] { return sample(daemon, "pickd_match_ratio_count") == 3; }));
  EXPECT_EQ(sample(daemon, "pickd_picks_total"), 3);
  const std::string page = get(daemon, "/metrics");
  EXPECT_THAT(page, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  double by_endpoint = 0;
  for (const char* name : {"e0", "e1", "e2", "e3"}) {
    by_endpoint += sample(daemon, "pickd_endpoint_picks_total{endpoint=\"" + std::string(name) +
                                      "\",pool=\"default\"}");
  }
  EXPECT_EQ(by_endpoint, 3);
  // Picks that follow each other closely are one turn of the channel.
  EXPECT_GE(sample(daemon, "pickd_pick_duration_seconds_count"), 1);
  EXPECT_LE(sample(daemon, "pickd_pick_duration_seconds_count"), 3);
  EXPECT_GT(sample(daemon, "pickd_pick_duration_seconds_sum"), 0);
  EXPECT_EQ(sample(daemon, "pickd_reservations"), 3);
  EXPECT_EQ(sample(daemon, "pickd_endpoints_ready"), 4);
}

TEST(AdminListener, SpeaksOpenMetricsToWhoAsksForIt) {
  Daemon daemon(with_admin());
  Connection connection(daemon);
  connection.send(
      "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: "
      "application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n");
  const std::string answer = connection.answer();
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0"));
  EXPECT_THAT(answer, HasSubstr("# TYPE pickd_picks counter\n"));
  EXPECT_TRUE(answer.ends_with("# EOF\n"));
}

TEST(AdminListener, SaysThatItWorksAndWhetherItIsReady) {
  Daemon daemon(with_admin());
  for (int count = 0; count < 2; ++count) {  // the second looks at what the first asked
    const std::string health = get(daemon, "/healthz");
    EXPECT_THAT(health, StartsWith("HTTP/1.1 200 "));
    EXPECT_EQ(nlohmann::json::parse(body_of(health)).at("status"), "ok");
  }
  EXPECT_THAT(get(daemon, "/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(get(daemon, "/readyz"), HasSubstr("4 of 4 endpoints are ready"));
}

TEST(AdminListener, SaysWhyItIsNotReady) {
  Settings settings = with_admin();
  settings.endpoints = 0;
  Daemon daemon(settings);
  const std::string answer = get(daemon, "/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("there are no endpoints"));
  EXPECT_THAT(get(daemon, "/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(AdminListener, RefusesWhatIsNotForIt) {
  Daemon daemon(with_admin());
  const struct {
    std::string bytes;
    std::string status;
  } refused[] = {
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "413"},
      {"DELETE /metrics" + std::string(kGet), "405"},
      {"GET /nowhere" + std::string(kGet), "404"},
      {"GET /metrics/" + std::string(kGet), "404"},
      {"GET /../etc/passwd" + std::string(kGet), "404"},
      {"GET /metrics HTTP/1.1\r\nHost: pickd.example.org\r\n\r\n", "403"},
      {"GET /metrics HTTP/1.1\r\n\r\n", "400"},
      {"\x16\x03\x01 hello\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'x') + "\r\n\r\n", "431"},
  };
  double count = 0;
  for (const auto& one : refused) {
    Connection connection(daemon);
    connection.send(one.bytes);
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 " + one.status + " "));
    EXPECT_EQ(sample(daemon, "pickd_admin_refused_total"), ++count) << one.status;
  }
}

TEST(AdminListener, AnswersHeadWithoutABodyAndOneRequestAfterAnother) {
  Daemon daemon(with_admin());
  Connection connection(daemon);
  connection.send("HEAD /metrics" + std::string(kGet) + "GET /healthz" + kGet + "GET /x" + kGet);
  const std::string head = connection.answer(true);
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length: 0\r\n")));
  EXPECT_THAT(connection.answer(), HasSubstr("\"status\": \"ok\""));
  EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 404 "));
  connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(connection.answer(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(connection.ends());
}

TEST(AdminListener, GivesItsPlacesToOthersThanThoseThatIdle) {
  Daemon daemon(with_admin("  connections_max: 2\n"));
  Connection idle(daemon);
  idle.send("GET /healthz" + std::string(kGet));
  ASSERT_THAT(idle.answer(), StartsWith("HTTP/1.1 200 "));
  Connection slow(daemon);
  slow.send("GET /healthz HTTP/1.1\r\n");
  EXPECT_THAT(get(daemon, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(idle.ends());
  slow.send("Host: localhost\r\n\r\n");
  EXPECT_THAT(slow.answer(), StartsWith("HTTP/1.1 200 "));
}

TEST(AdminListener, ClosesTheNewOneWhereNoneIdles) {
  Daemon daemon(with_admin("  connections_max: 1\n"));
  Connection slow(daemon);
  slow.send("GET /healthz HTTP/1.1\r\n");
  // Once the first is known to have its place.
  ASSERT_TRUE(eventually([&] {
    Connection refused(daemon);
    return refused.ends() && daemon.counter("admin_connections_refused") > 0;
  }));
  slow.send("Host: localhost\r\n\r\n");
  EXPECT_THAT(slow.answer(), StartsWith("HTTP/1.1 200 "));
}

TEST(AdminListener, EndsWhoIsSlowOrSilentAndNobodyElse) {
  Daemon daemon(with_admin("  request_within: 200ms\n  idle: 300ms\n"));
  Connection silent(daemon);
  Connection slow(daemon);
  slow.send("GET /healthz HTT");
  Connection idle(daemon);
  idle.send("GET /healthz" + std::string(kGet));
  EXPECT_THAT(idle.answer(), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(slow.ends());
  EXPECT_TRUE(idle.ends());
  EXPECT_THAT(get(daemon, "/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(AdminListener, GoesOnForOthersWhileOnePeerTakesNothing) {
  Daemon daemon(with_admin("  request_within: 60s\n"));
  Connection greedy(daemon);
  std::string many;
  for (int count = 0; count < 100; ++count) many += "GET /metrics" + std::string(kGet);
  greedy.send(many);
  for (int count = 0; count < 5; ++count)
    EXPECT_THAT(get(daemon, "/healthz"), StartsWith("HTTP/1.1 200 "));
  for (int count = 0; count < 100; ++count)
    EXPECT_THAT(greedy.answer(), StartsWith("HTTP/1.1 200 ")) << count;
}

TEST(AdminListener, ServesAtAUnixSocketOfItsMode) {
  Settings settings;
  const tools::TempDir directory = std::move(*tools::TempDir::make("pickd-admin"));
  const std::string path = directory.path() + "/admin.sock";
  settings.rest = "admin: {socket: \"" + path + "\", mode: \"0600\"}\n";
  {
    Daemon daemon(settings);
    struct stat file {};
    ASSERT_EQ(::stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0600U);
    Connection connection(path);
    connection.send("GET /metrics HTTP/1.1\r\nHost: whoever\r\n\r\n");
    EXPECT_THAT(connection.answer(), HasSubstr("pickd_picks_total 0\n"));
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(AdminListener, IsNotStartedWhereOthersReachIt) {
  const Ended ended = run("pickd", {"--check-config"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  ::setenv("PICKD_ADMIN_LISTEN", "0.0.0.0:9464", 1);
  const Ended refused = run("pickd", {"--check-config"});
  ::unsetenv("PICKD_ADMIN_LISTEN");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("admin.allow_remote"));
}

TEST(AdminPage, IsWholeAndLetsNothingElseIn) {
  Daemon daemon(with_admin());
  const std::string answer = get(daemon, "/");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  const std::string policy = answer.substr(0, answer.find("\r\n\r\n"));
  EXPECT_THAT(policy, HasSubstr("Content-Security-Policy: default-src 'none'; script-src "
                                "'sha256-"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("Access-Control-")));
  const std::string page = body_of(answer);
  for (const char* outside : {"https://", "src=", "@import", "url(", "href=\"http"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST(AdminPage, ShowsPicksWithoutWhatIsPrivateInThem) {
  Daemon daemon(with_admin());
  Client client(daemon);
  Request request("a secret prompt of some length");
  const std::string session = "secret-session";
  request.raw.session_id = {session.data(), session.size()};
  request.raw.request_id = {session.data(), session.size()};
  Result result;
  ASSERT_EQ(pick(client, request, result), 0);
  const auto picks = nlohmann::json::parse(body_of(get(daemon, "/api/picks")));
  ASSERT_EQ(picks.at("picks").size(), 1U);
  const auto& first = picks.at("picks").at(0);
  EXPECT_EQ(first.at("status"), 0);
  const auto& candidates = first.at("stages").at(0).at("candidates");
  EXPECT_EQ(candidates.size(), 4U);
  EXPECT_EQ(candidates.at(0).at("name"), result.name());
  EXPECT_THAT(get(daemon, "/api/picks"), Not(HasSubstr("secret")));
  EXPECT_THAT(get(daemon, "/api/state"), Not(HasSubstr("secret")));
}

TEST(AdminPage, GivesThePointsThatAreNewToWhoAsks) {
  Daemon daemon(with_admin());
  nlohmann::json state;
  ASSERT_TRUE(eventually([&] {
    state = nlohmann::json::parse(body_of(get(daemon, "/api/state")));
    return state.at("points").size() >= 2;
  }));
  const auto last = state.at("points").back().at("n").get<std::uint64_t>();
  state =
      nlohmann::json::parse(body_of(get(daemon, "/api/state?since=" + std::to_string(last - 1))));
  EXPECT_EQ(state.at("points").at(0).at("n"), last);
  EXPECT_EQ(state.at("endpoints").size(), 4U);
  EXPECT_TRUE(state.at("ready"));
}

TEST(AdminPage, CanBeLeftOut) {
  Daemon daemon(with_admin("  page: false\n"));
  for (const char* path : {"/", "/api/state", "/api/picks"})
    EXPECT_THAT(get(daemon, path), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get(daemon, "/metrics"), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace pickd::systests

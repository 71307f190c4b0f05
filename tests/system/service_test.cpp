// The daemon as a service manager sees it: a socket that is passed, the words it is told, and the
// watchdog. The test plays the manager's part with the real protocol: a datagram socket and the
// environment.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

std::string binary(const std::string& program) { return PICKD_BINARY_DIR "/bin/" + program; }

// Where the daemon sends what it has to say.
class Manager {
 public:
  explicit Manager(const std::string& path) {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval patience{std::chrono::duration_cast<std::chrono::seconds>(kGenerous).count(), 0};
    EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() { ::close(fd_); }

  // The next message; empty when none came in a generous time.
  std::string next() {
    char text[4096];
    const ssize_t got = ::recv(fd_, text, sizeof text, 0);
    return got < 0 ? std::string() : std::string(text, static_cast<std::size_t>(got));
  }
  // Messages until one has `word`; that one, or empty.
  std::string until(const std::string& word) {
    while (true) {
      const std::string message = next();
      if (message.empty() || message.find(word) != std::string::npos) return message;
    }
  }
  // Reads what came without waiting; how many were `word`.
  int count(const std::string& word) {
    char text[4096];
    int found = 0;
    while (true) {
      const ssize_t got = ::recv(fd_, text, sizeof text, MSG_DONTWAIT);
      if (got < 0) return found;
      found += std::string(text, static_cast<std::size_t>(got)) == word ? 1 : 0;
    }
  }

 private:
  int fd_ = -1;
};

class Service : public ::testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
  }
  tools::TempDir directory_ = std::move(*tools::TempDir::make("pickd-service"));
};

TEST_F(Service, IsToldWhenTheDaemonIsReadyReloadsAndStops) {
  Manager manager(directory_.path() + "/notify");
  ::setenv("NOTIFY_SOCKET", (directory_.path() + "/notify").c_str(), 1);
  Daemon daemon;
  const std::string ready = manager.until("READY=1");
  EXPECT_NE(ready.find("STATUS=profile "), std::string::npos) << ready;
  EXPECT_NE(ready.find("4 endpoints"), std::string::npos) << ready;
  daemon.signal(SIGHUP);
  const std::string reloading = manager.until("RELOADING=1");
  EXPECT_NE(reloading.find("MONOTONIC_USEC="), std::string::npos) << reloading;
  EXPECT_FALSE(manager.until("READY=1").empty());
  daemon.stop();
  EXPECT_FALSE(manager.until("STOPPING=1").empty());
}

TEST_F(Service, TellsTheWatchdogAgainAndAgain) {
  Manager manager(directory_.path() + "/notify");
  ::setenv("NOTIFY_SOCKET", (directory_.path() + "/notify").c_str(), 1);
  ::setenv("WATCHDOG_USEC", "300000", 1);
  Daemon daemon;
  for (int beat = 0; beat < 5; ++beat) EXPECT_EQ(manager.until("WATCHDOG=1"), "WATCHDOG=1");
}

TEST_F(Service, IsNotToldThatADaemonLivesWhoseThreadsStandStill) {
  Manager manager(directory_.path() + "/notify");
  ::setenv("NOTIFY_SOCKET", (directory_.path() + "/notify").c_str(), 1);
  ::setenv("WATCHDOG_USEC", "300000", 1);
  Daemon daemon;
  ASSERT_EQ(manager.until("WATCHDOG=1"), "WATCHDOG=1");
  daemon.signal(SIGSTOP);
  manager.count("WATCHDOG=1");  // what was said before it stopped
  // Nothing is said for as long as one that lives needs to say it three times elsewhere.
  Manager other(directory_.path() + "/other");
  ::setenv("NOTIFY_SOCKET", (directory_.path() + "/other").c_str(), 1);
  {
    Daemon living;
    for (int beat = 0; beat < 4; ++beat) ASSERT_EQ(other.until("WATCHDOG=1"), "WATCHDOG=1");
  }
  EXPECT_EQ(manager.count("WATCHDOG=1"), 0);
  daemon.signal(SIGCONT);
  EXPECT_EQ(manager.until("WATCHDOG=1"), "WATCHDOG=1");
}

TEST_F(Service, IsGivenTheSocketThatItHoldsAndLeavesItThere) {
  Settings settings;
  settings.runner = {"pass-socket", "pickd.sock"};
  Daemon daemon(settings);
  Client client(daemon);
  Request request("a prompt");
  Result result;
  EXPECT_EQ(::pickd_pick(client.get(), &request.raw, kGenerousUs, result.get()), 0)
      << client.last_error();
  client.close();
  daemon.stop();
  EXPECT_EQ(::access(daemon.socket().c_str(), F_OK), 0) << "it is the service manager's";
}

TEST_F(Service, IsToldWhichSocketWasExpected) {
  tools::Child::Options options;
  options.error_file = directory_.path() + "/log";
  {
    std::ofstream file(directory_.path() + "/pickd.yaml");
    file << "listen: {socket: " << directory_.path() << "/pickd.sock}\n"
         << "state: {path: " << directory_.path() << "/state, size_mib: 32}\n";
  }
  const std::vector<std::string> arguments = {binary("pass-socket"), "elsewhere.sock",
                                              binary("pickd"), "--config",
                                              directory_.path() + "/pickd.yaml"};
  auto child = tools::Child::start(arguments, options);
  ASSERT_TRUE(child.ok()) << child.error().text;
  ASSERT_TRUE(eventually([&] { return !child->running(); }));
  EXPECT_EQ(WEXITSTATUS(child->exit_status()), 1);
  std::ifstream log(options.error_file);
  const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("does not listen at listen.socket"), std::string::npos) << text;
}

}  // namespace
}  // namespace pickd::systests

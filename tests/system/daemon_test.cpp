// The daemon as a process: one instance, configuration, start and stop, restart under its clients.
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

std::string write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

std::string pid_words(const Daemon& daemon) { return "pid " + std::to_string(daemon.pid()); }

TEST(SystemDaemon, RefusesASecondOneOnTheSameSocketAndNamesTheFirst) {
  Daemon daemon;
  const std::string config =
      write(daemon.directory() + "/second.yaml",
            "listen: {socket: " + daemon.socket() + "}\nstate: {path: " + daemon.state() + "2}\n");
  const Ended second = run("pickd", {"--config", config});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.errors.find(pid_words(daemon)), std::string::npos) << second.errors;
  EXPECT_NE(second.errors.find(daemon.socket()), std::string::npos) << second.errors;
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0) << "the first goes on";
  EXPECT_TRUE(std::filesystem::exists(daemon.socket())) << "and keeps its socket";
}

TEST(SystemDaemon, RefusesASecondOneOnTheSameState) {
  Daemon daemon;
  const std::string config =
      write(daemon.directory() + "/second.yaml",
            "listen: {socket: " + daemon.socket() + "2}\nstate: {path: " + daemon.state() + "}\n");
  const Ended second = run("pickd", {"--config", config});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.errors.find(pid_words(daemon)), std::string::npos) << second.errors;
  EXPECT_NE(second.errors.find(daemon.state()), std::string::npos) << second.errors;
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0);
}

TEST(SystemDaemon, RefusesASecondOneOnTheSameStateByAnyName) {
  Daemon daemon;
  const std::string link = daemon.directory() + "/link";
  std::filesystem::create_hard_link(daemon.state(), link);
  // Of the size that the first one's has, and of another: neither is taken over nor replaced.
  for (const char* mib : {"32", "16"}) {
    for (const std::string& name : {link, daemon.state()}) {
      std::filesystem::remove(daemon.state() + ".lock");
      const std::string config =
          write(daemon.directory() + "/second.yaml", "listen: {socket: " + daemon.socket() +
                                                         "2}\nstate: {path: " + name +
                                                         ", size_mib: " + mib + "}\n");
      const Ended second = run("pickd", {"--config", config});
      EXPECT_EQ(second.exit_code, 1);
      EXPECT_NE(second.errors.find(pid_words(daemon)), std::string::npos) << second.errors;
      EXPECT_NE(second.errors.find("state.path " + name), std::string::npos) << second.errors;
    }
  }
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  EXPECT_NE(daemon.log().find("store: warm"), std::string::npos) << "the link stops no restart";
}

TEST(SystemDaemon, LeavesAFileAloneThatIsNoSocket) {
  auto directory = tools::TempDir::make("pickd-systest");
  ASSERT_TRUE(directory.ok());
  const std::string precious = write(directory->path() + "/precious", "data\n");
  const std::string config =
      write(directory->path() + "/c.yaml", "listen: {socket: " + precious + "}\nstate: {path: " +
                                               directory->path() + "/state, size_mib: 32}\n");
  const Ended refused = run("pickd", {"--config", config});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.errors.find(precious), std::string::npos) << refused.errors;
  EXPECT_EQ(std::filesystem::file_size(precious), 5U);
}

TEST(SystemDaemon, TakesOverTheSocketThatAKilledOneLeft) {
  Daemon daemon;
  daemon.signal(SIGKILL);
  daemon.reap();
  EXPECT_TRUE(std::filesystem::exists(daemon.socket()));
  daemon.start();
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0);
}

TEST(SystemDaemon, ExitsWith2AndFileLineAndKeyForABadConfiguration) {
  auto directory = tools::TempDir::make("pickd-systest");
  ASSERT_TRUE(directory.ok());
  struct Bad {
    const char* text;
    const char* line;
    const char* key;
  };
  const Bad cases[] = {
      {"state:\n  size_mib: -1\n", ":2", "size_mib"},
      {"state:\n  path: /tmp/x\n  block_tokens: 0\n", ":3", "block_tokens"},
      {"listen:\n  sokcet: /tmp/x\n", ":2", "sokcet"},
      {"\n\nworkers: {count: 2147483648}\n", ":3", "count"},
      {"state:\n  ttl: -5s\n", ":2", "ttl"},
      {"scheduling:\n  profile: nonsense\n", ":2", "nonsense"},
      {"endpoints:\n  - {name: a, address: x}\n  - {name: a, address: y}\n", ":3", "a"},
      {"endpoints: [}\n", ":1", ""},
  };
  for (const Bad& bad : cases) {
    const std::string file = write(directory->path() + "/bad.yaml", bad.text);
    for (const char* option : {"--config", "--check-config"}) {
      const Ended refused = run("pickd", {option, file});
      EXPECT_EQ(refused.exit_code, 2) << bad.text;
      EXPECT_NE(refused.errors.find(file + bad.line), std::string::npos) << refused.errors;
      EXPECT_NE(refused.errors.find(bad.key), std::string::npos) << refused.errors;
      EXPECT_EQ(refused.output, "");
    }
  }
  EXPECT_EQ(run("pickd", {"--config", directory->path() + "/none.yaml"}).exit_code, 2);
  EXPECT_EQ(run("pickd", {"--nonsense"}).exit_code, 2);
}

TEST(SystemDaemon, ChecksAndPrintsAConfigurationWithoutServing) {
  auto directory = tools::TempDir::make("pickd-systest");
  ASSERT_TRUE(directory.ok());
  const std::string socket = directory->path() + "/s";
  const std::string file =
      write(directory->path() + "/good.yaml", "listen:\n  socket: " + socket +
                                                  "\nstate:\n  path: " + directory->path() +
                                                  "/state\n  ttl: 45s\nendpoints:\n"
                                                  "  - {name: a, address: \"h:1\", models: [m]}\n");
  const Ended checked = run("pickd", {"--check-config", file});
  EXPECT_EQ(checked.exit_code, 0) << checked.errors;
  EXPECT_NE(checked.output.find(file), std::string::npos) << checked.output;
  const Ended printed = run("pickd", {"--config", file, "--print-config"});
  EXPECT_EQ(printed.exit_code, 0) << printed.errors;
  EXPECT_NE(printed.output.find("ttl: 45s"), std::string::npos) << printed.output;
  EXPECT_NE(printed.output.find(file + ":5"), std::string::npos) << "where the TTL came from";
  EXPECT_FALSE(std::filesystem::exists(socket));

  // A file without any content may be meant, or cut.
  for (const char* text : {"", "# all of it\n", "state:\nscheduling:\n"}) {
    const std::string empty = write(directory->path() + "/empty.yaml", text);
    const Ended nothing = run("pickd", {"--check-config", empty});
    EXPECT_EQ(nothing.exit_code, 0) << nothing.errors;
    EXPECT_EQ(nothing.output, empty + ": good, but holds nothing: all defaults apply\n") << text;
  }

  // What is printed is a configuration, and means the same.
  const std::string again = write(directory->path() + "/again.yaml", printed.output);
  const Ended reprinted = run("pickd", {"--config", again, "--print-config"});
  EXPECT_EQ(reprinted.exit_code, 0) << reprinted.errors;
  EXPECT_NE(reprinted.output.find("ttl: 45s"), std::string::npos);
  EXPECT_NE(reprinted.output.find("name: \"a\""), std::string::npos) << reprinted.output;
}

TEST(SystemDaemon, StopsInOrderAndRemovesItsSocket) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Daemon daemon;
    const Client client(daemon);
    const Result result;
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    daemon.signal(signal);
    daemon.reap();
    const int status = daemon.stop();
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_FALSE(std::filesystem::exists(daemon.socket()));
    EXPECT_EQ(pick(client, Request("hello"), result), 0);
    EXPECT_TRUE(result.degraded()) << "from the state it left";
  }
}

TEST(SystemDaemon, KeepsItsStateFromOtherUsers) {
  Daemon daemon;
  struct stat found {};
  ASSERT_EQ(::stat(daemon.state().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600U);
  EXPECT_GE(static_cast<std::uint64_t>(found.st_blocks) * 512,
            static_cast<std::uint64_t>(found.st_size))
      << "a sparse file is a SIGBUS later";
  ASSERT_EQ(::stat(daemon.socket().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0660U) << "the default of listen.mode";
}

TEST(SystemDaemon, IsFoundAgainByItsClientsAfterARestart) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  for (const int signal : {SIGTERM, SIGKILL}) {
    const pickd_ticket old_ticket = result.ticket();
    const std::string name = "new-" + std::to_string(signal);
    daemon.signal(signal);
    daemon.reap();
    const Result between;
    EXPECT_EQ(pick(client, Request("hello"), between), 0);
    EXPECT_TRUE(between.degraded());
    EXPECT_EQ(client.add(name, "h:1"), -ENOTCONN);
    daemon.start();
    ASSERT_TRUE(eventually([&] {
      return pick(client, Request("hello"), result) == 0 && !result.degraded();
    })) << client.last_error();
    EXPECT_EQ(result.ticket().client, old_ticket.client) << "who it is survives";
    EXPECT_GT(result.ticket().sequence, old_ticket.sequence);
    EXPECT_EQ(client.report(old_ticket, PICKD_REPORT_DONE), 0) << "old tickets still work";
    EXPECT_EQ(client.report(old_ticket, PICKD_REPORT_DONE), -ESTALE) << "once";
    EXPECT_EQ(client.add(name, "h:1"), 0);
  }
}

TEST(SystemDaemon, TakesCallsRightAfterARestartWithoutAFailureBetween) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  daemon.stop();
  daemon.start();
  // Each kind of call as the first after a restart.
  const Result after;
  EXPECT_EQ(pick(client, Request("hello"), after), 0) << client.last_error();
  daemon.stop();
  daemon.start();
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0) << client.last_error();
  daemon.stop();
  daemon.start();
  EXPECT_EQ(client.add("new", "h:1"), 0) << client.last_error();
}

TEST(SystemDaemon, LetsNoPickHangWhenItIsKilled) {
  Daemon daemon;
  const Client client(daemon);
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  std::vector<int> codes(kThreads, 1);
  {
    // One channel a thread, so that none needs the control socket later.
    std::vector<std::thread> warm;
    for (int at = 0; at < kThreads; ++at) {
      warm.emplace_back([&] {
        const Result own;
        for (int turn = 0; turn < 20; ++turn) pick(client, Request("warm"), own);
      });
    }
    for (std::thread& thread : warm) thread.join();
  }
  daemon.signal(SIGSTOP);
  for (int at = 0; at < kThreads; ++at) {
    threads.emplace_back([&, at] {
      const Result own;
      int code = 0;
      // What was already answered when the stop took effect is a good answer; go on until one
      // waits.
      do {
        code = pick(client, Request("waits"), own, PICKD_NO_DEADLINE);
      } while (code == 0 && !own.degraded());
      codes[static_cast<std::size_t>(at)] = code;
    });
  }
  daemon.signal(SIGKILL);
  daemon.reap();
  for (std::thread& thread : threads) thread.join();
  for (const int code : codes) EXPECT_EQ(code, 0) << "answered without it";
}

TEST(SystemDaemon, LetsNoPickHangWhenItStopsInOrder) {
  Daemon daemon;
  const Client client(daemon);
  std::vector<std::thread> threads;
  std::vector<int> codes(8, 1);
  for (int& code : codes) {
    threads.emplace_back([&client, &code] {
      const Result own;
      do {
        code = pick(client, Request("waits"), own, PICKD_NO_DEADLINE);
        if (code == 0) client.report(own.ticket(), PICKD_REPORT_DONE);
      } while (code == 0 && !own.degraded());
    });
  }
  EXPECT_TRUE(eventually([&] { return daemon.counter("picks") > 1000; }));
  EXPECT_EQ(daemon.stop(), 0);
  for (std::thread& thread : threads) thread.join();
  for (const int code : codes) EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace pickd::systests

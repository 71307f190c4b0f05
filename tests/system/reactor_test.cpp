// The daemon on each reactor, chosen, refused and told of in its status.
#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "daemon/net/reactor.hpp"
#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

bool io_uring_works() { return net::make_io_uring_reactor().ok(); }

nlohmann::json status_of(Daemon& daemon) {
  const Ended asked = run("pickctl", {"--socket", daemon.socket(), "--json", "status"});
  EXPECT_EQ(asked.exit_code, 0) << asked.errors;
  return nlohmann::json::parse(asked.output);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Clients come, pick, report, and go; one of them dies.
void expect_service(Daemon& daemon) {
  for (int round = 0; round < 3; ++round) {
    const Client client(daemon);
    const Result result;
    ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), 0) << client.last_error();
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  const Forked dying([&daemon](Forked& self) {
    const Client client(daemon);
    const Result result;
    if (pick(client, Request(prompt_of(1024)), result) != 0) return 1;
    self.say('p');
    return self.hear() == 0 ? 0 : 1;
  });
  ASSERT_EQ(dying.hear(), 'p');
  EXPECT_EQ(daemon.inflight(), 1U);
  dying.kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << "its end was not noticed";
}

class SystemReactor : public testing::TestWithParam<const char*> {};

TEST_P(SystemReactor, ServesClientsAndStopsInOrder) {
  if (GetParam() == std::string("io_uring") && !io_uring_works())
    GTEST_SKIP() << "no io_uring here";
  Daemon daemon({.arguments = {std::string("--reactor=") + GetParam()}});
  expect_service(daemon);
  const auto status = status_of(daemon);
  EXPECT_EQ(status.at("reactor"), GetParam());
  EXPECT_EQ(status.at("reactor_why"), "");
  EXPECT_EQ(count_of(daemon.log(), "reactor"), 0U) << "nothing to say";
  EXPECT_EQ(daemon.stop(), 0);
}

TEST_P(SystemReactor, IsChosenByTheSettingToo) {
  if (GetParam() == std::string("io_uring") && !io_uring_works())
    GTEST_SKIP() << "no io_uring here";
  Daemon daemon({.listen = {std::string("reactor: ") + GetParam()}});
  EXPECT_EQ(status_of(daemon).at("reactor"), GetParam());
}

// After SIGKILL nothing that the ring polled may hold the socket or the lock.
TEST_P(SystemReactor, LetsTheNextDaemonStartAtOnceAfterAKill) {
  Daemon daemon({.arguments = {std::string("--reactor=") + GetParam()}});
  for (int round = 0; round < 3; ++round) {
    const Client client(daemon);
    daemon.signal(SIGKILL);
    daemon.reap();
    daemon.start();
    ASSERT_FALSE(HasFatalFailure());
  }
  expect_service(daemon);
}

INSTANTIATE_TEST_SUITE_P(Each, SystemReactor, testing::Values("epoll", "io_uring"),
                         [](const auto& param) { return std::string(param.param); });

TEST(SystemReactorChoice, IsIoUringWhereItWorksWhenNobodySays) {
  Daemon daemon;
  EXPECT_EQ(status_of(daemon).at("reactor"), io_uring_works() ? "io_uring" : "epoll");
}

TEST(SystemReactorChoice, RefusesAnyOtherWord) {
  const Ended bad = run("pickd", {"--reactor=kqueue"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.errors.find("io_uring"), std::string::npos) << bad.errors;
}

// ---- Refused ------------------------------------------------------------------------------------

struct Refusal {
  const char* label;
  int error;
  const char* calls;
  const char* said;  // what log and status then hold
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.label; }

class SystemReactorRefused : public testing::TestWithParam<Refusal> {
 protected:
  Settings settings(const std::string& reactor) {
    Settings made;
    made.arguments = {"--reactor=" + reactor};
    made.runner = {"refuse-io-uring", std::to_string(GetParam().error), GetParam().calls};
    return made;
  }
  void SetUp() override {
    const Ended tried = run("refuse-io-uring", {"1", "setup", "/bin/true"});
    if (tried.exit_code == 77) GTEST_SKIP() << tried.errors;
    ASSERT_EQ(tried.exit_code, 0) << tried.errors;
  }
};

TEST_P(SystemReactorRefused, ServesOverEpollAndSaysWhy) {
  Daemon daemon(settings("auto"));
  expect_service(daemon);
  const auto status = status_of(daemon);
  EXPECT_EQ(status.at("reactor"), "epoll");
  const std::string why = status.at("reactor_why");
  EXPECT_NE(why.find(GetParam().said), std::string::npos) << why;
  const Ended text = run("pickctl", {"--socket", daemon.socket(), "status"});
  EXPECT_NE(text.output.find("reactor epoll"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find(why), std::string::npos) << text.output;
  EXPECT_EQ(count_of(daemon.log(), why), 1U) << "said once";
  EXPECT_EQ(count_of(daemon.log(), "warn"), 0U) << "auto means that either is fine";
  EXPECT_EQ(daemon.stop(), 0);
}

TEST_P(SystemReactorRefused, ServesOverEpollWithAWarningWhenIoUringWasAsked) {
  Daemon daemon(settings("io_uring"));
  expect_service(daemon);
  EXPECT_EQ(status_of(daemon).at("reactor"), "epoll");
  const std::string log = daemon.log();
  const std::size_t warning = log.find("warn");
  ASSERT_NE(warning, std::string::npos) << log;
  EXPECT_NE(log.find(GetParam().said, warning), std::string::npos) << log;
}

TEST_P(SystemReactorRefused, HasNothingToSayWhenEpollWasAsked) {
  Daemon daemon(settings("epoll"));
  EXPECT_EQ(status_of(daemon).at("reactor"), "epoll");
  EXPECT_EQ(status_of(daemon).at("reactor_why"), "");
  EXPECT_EQ(count_of(daemon.log(), "io_uring"), 0U);
}

// Docker's profile refuses all with EPERM, older ones with ENOSYS; a sandbox may know only a part.
const Refusal kRefusals[] = {
    {"All", EPERM, "setup,enter,register", "io_uring_setup: Operation not permitted"},
    {"AsUnknown", ENOSYS, "setup,enter,register", "io_uring_setup: Function not implemented"},
    {"NoDescriptorLeft", EMFILE, "setup", "io_uring_setup: Too many open files"},
    {"TheUse", EPERM, "enter", "Operation not permitted"},
    {"TheProbe", EPERM, "register", "no probe of operations"},
};
INSTANTIATE_TEST_SUITE_P(Each, SystemReactorRefused, testing::ValuesIn(kRefusals),
                         [](const auto& param) { return std::string(param.param.label); });

}  // namespace
}  // namespace pickd::systests

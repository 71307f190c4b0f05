// Endpoints that change while everybody picks, and a daemon that is short of something.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

TEST(SystemChurn, AResetOfTheOnlyEndpointFailsNoPick) {
  Daemon daemon({.endpoints = 1});
  const Client client(daemon);
  std::atomic<bool> done{false};
  std::thread resetter([&] {
    const Client admin(daemon.socket());
    for (int turn = 0; turn < 2000; ++turn) EXPECT_EQ(pickd_endpoint_reset(admin.get(), "e0"), 0);
    done.store(true);
  });
  std::size_t picks = 0;
  const Result result;
  while (!done.load()) {
    EXPECT_EQ(pick(client, Request("hello"), result), 0) << "after " << picks << " picks";
    if (HasFailure()) break;  // the thread is joined below
    const int reported = client.report(result.ticket(), PICKD_REPORT_DONE);
    EXPECT_TRUE(reported == 0 || reported == -ESTALE) << reported;
    ++picks;
  }
  resetter.join();
  EXPECT_GT(picks, 0U);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemChurn, StartsAgainWhenAClientTookANameOfTheFile) {
  Daemon daemon({.endpoints = 2});
  {
    const Client client(daemon);
    ASSERT_EQ(pickd_endpoint_remove(client.get(), "e0"), 0);
    ASSERT_EQ(client.add("e0", "10.1.1.1:1"), 0);
  }
  daemon.stop();
  daemon.start();
  EXPECT_EQ(daemon.endpoints().size(), 2U);
  EXPECT_EQ(daemon.endpoints().at("e0").address, "10.0.0.0:8000") << "the file's word holds";
}

TEST(SystemChurn, RestsWhenItIsOutOfDescriptors) {
  Daemon daemon;
  const Client before(daemon);
  const Result result;
  ASSERT_EQ(pick(before, Request("hello"), result), 0);
  // No descriptor is left for a new client: as many as are open now.
  rlimit old{};
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_NOFILE, nullptr, &old), 0);
  const rlimit tight{daemon.descriptors(), old.rlim_max};
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_NOFILE, &tight, nullptr), 0);
  std::vector<base::Fd> silent;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, daemon.socket().c_str(), sizeof address.sun_path - 1);
  for (int at = 0; at < 20; ++at) {
    silent.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
              0);
  }
  EXPECT_TRUE(
      eventually([&] { return daemon.log().find("no new clients for") != std::string::npos; }));
  EXPECT_EQ(pick(before, Request("hello"), result), 0) << "who is there is served";
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_NOFILE, &old, nullptr), 0);
  silent.clear();
  const Client after(daemon);
  EXPECT_EQ(pick(after, Request("hello"), result), 0) << "and then the others are, too";
  EXPECT_LT(std::filesystem::file_size(daemon.directory() + "/log"), 100'000U);
}

TEST(SystemChurn, ShowsNamesThatAreNoText) {
  Daemon daemon({.endpoints = 0});
  const Client client(daemon);
  ASSERT_EQ(client.add("bad\xff\xfename", "10.1.1.1:1"), 0);
  EXPECT_EQ(client.add("bad\x1b[31mname", "10.1.1.1:2"), -EINVAL) << "it could move a cursor";
  for (const char* command : {"endpoints", "store"}) {
    const Ended shown = run("pickctl", {"--socket", daemon.socket(), "--json", command});
    EXPECT_EQ(shown.exit_code, 0) << shown.errors;
    EXPECT_EQ(nlohmann::json::parse(shown.output).at("endpoints").size(), 1U);
  }
}

TEST(SystemChurn, ChecksWhatASizeAndAGroupNeed) {
  auto directory = tools::TempDir::make("pickd-systest");
  ASSERT_TRUE(directory.ok());
  const std::string path = directory->path() + "/c.yaml";
  std::ofstream(path) << "state: {size_mib: 8}\n";
  const Ended small = run("pickd", {"--check-config", path});
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_NE(small.errors.find("state.size_mib"), std::string::npos) << small.errors;
  std::ofstream(path) << "listen: {group: no-such-group-here}\n";
  const Ended group = run("pickd", {"--check-config", path});
  EXPECT_EQ(group.exit_code, 2);
  EXPECT_NE(group.errors.find("no-such-group-here"), std::string::npos) << group.errors;
}

// Field case 10, at the default threshold: what 1,000 prompts share is shorter than a block.
TEST(SystemChurn, SpreadsPromptsThatShareLessThanABlock) {
  Daemon daemon({.endpoints = 4});
  const Client client(daemon);
  const std::string shared = prompt_of(200, 1);
  std::map<std::string, int> picks;
  const Result result;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    ASSERT_EQ(pick(client, Request(shared + prompt_of(1800, seed + 10)), result), 0);
    ++picks[result.name()];
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  ASSERT_EQ(picks.size(), 4U);
  for (const auto& [name, count] : picks) EXPECT_NEAR(count, 250, 75) << name;
}

}  // namespace
}  // namespace pickd::systests

// A restart keeps what the state file holds: blocks, endpoints, reservations. Every doubt about the
// file means an empty store and a reason.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "abi/state_layout.hpp"
#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr std::size_t kPromptBytes = 16'384;
constexpr std::uint32_t kPromptTokens = kPromptBytes / 4;

struct Picked {
  std::string name;
  std::uint32_t match_tokens;
};

Picked pick_prompt(Daemon& daemon, unsigned seed) {
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request(prompt_of(kPromptBytes, seed)), result), 0);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  return {result.name(), result.match_tokens()};
}

std::string store_line(const Daemon& daemon) {
  const std::string log = daemon.log();
  const std::size_t at = log.rfind("store: ");
  return at == std::string::npos ? log : log.substr(at, log.find('\n', at) - at);
}

TEST(SystemWarmRestart, FindsEveryBlockAgainAfterAKill) {
  Daemon daemon;
  std::vector<Picked> before;
  for (unsigned seed = 0; seed < 20; ++seed) before.push_back(pick_prompt(daemon, seed));
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  EXPECT_NE(store_line(daemon).find("warm"), std::string::npos) << store_line(daemon);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Picked after = pick_prompt(daemon, seed);
    EXPECT_EQ(after.name, before[seed].name) << seed;
    EXPECT_EQ(after.match_tokens, kPromptTokens) << seed;
  }
}

TEST(SystemWarmRestart, KeepsTheEndpointsThatAClientAdded) {
  Daemon daemon;
  const Client client(daemon);
  pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  const char* const models[] = {"added-model"};
  endpoint.name = "added";
  endpoint.address = "10.9.9.9:1";
  endpoint.models = models;
  endpoint.model_count = 1;
  ASSERT_EQ(pickd_endpoint_add(client.get(), &endpoint), 0);
  const auto before = daemon.endpoints();
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  const auto after = daemon.endpoints();
  ASSERT_TRUE(after.contains("added"));
  EXPECT_EQ(after, before);
  const Client again(daemon);
  Request request("hello");
  request.raw.model = pickd_string("added-model");
  // The endpoints of the file serve any model, so that the added one is named by the subset.
  request.subset({"added"});
  const Result result;
  EXPECT_EQ(pick(again, request, result), 0);
  EXPECT_EQ(result.name(), "added");
}

// What was learned is there at once: no request has to be served before predictions are made.
TEST(SystemWarmRestart, KeepsWhatWasLearnedOfLatencies) {
  constexpr std::uint64_t kRequests = 40;
  Daemon daemon;
  const Client client(daemon);
  unsigned seed = 0;
  const auto serve = [&] {
    Request request(prompt_of(kPromptBytes, seed++));
    request.raw.flags |= PICKD_REQUEST_STREAM;
    const Result result;
    ASSERT_EQ(pick(client, request, result), 0);
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0);
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  };
  while (seed < kRequests) serve();
  ASSERT_TRUE(eventually([&] { return daemon.status().ttft_samples == kRequests; }));
  EXPECT_EQ(daemon.counter("models_restored"), 0U);
  // Two writes from now: the second began when all of these were learned.
  const std::uint64_t written = daemon.counter("models_written");
  ASSERT_TRUE(eventually([&] {
    serve();
    return daemon.counter("models_written") >= written + 2;
  }));
  const StatusView before = daemon.status();
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  const StatusView after = daemon.status();
  EXPECT_EQ(after.counters.at("models_restored"), before.counters.at("models_restored") + 1);
  EXPECT_GE(after.ttft_samples, kRequests);
  EXPECT_GT(after.ttft_mape, 0);
}

TEST(SystemWarmRestart, KeepsAReservationUntilItsClientReports) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes)), result), 0);
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  EXPECT_EQ(daemon.inflight(), 1U);
  EXPECT_EQ(daemon.endpoints().at(result.name()).inflight_tokens, kPromptTokens);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0) << client.last_error();
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemWarmRestart, ReleasesWhatClientsHeldThatDoNotComeBackAndKeepsTheOthers) {
  Daemon daemon({.rest = "reservations: {come_back_within: 300ms}"});
  const Client stays(daemon);
  const Result kept;
  Request at_e1("stays");
  ASSERT_EQ(pick(stays, at_e1.subset({"e1"}), kept), 0);
  Forked doomed([&](Forked& self) {
    const Client client(daemon.socket());
    const Result result;
    Request at_e2("doomed");
    at_e2.subset({"e2"});
    for (int at = 0; at < 5; ++at) {
      if (pick(client, at_e2, result) != 0) return 1;
    }
    self.say('p');
    self.hear();
    return 0;
  });
  ASSERT_EQ(doomed.hear(), 'p');
  // Both at once: the daemon cannot see the client die.
  daemon.signal(SIGKILL);
  daemon.reap();
  doomed.kill(SIGKILL);
  EXPECT_EQ(doomed.wait(), -SIGKILL);
  daemon.start();
  const auto started = std::chrono::steady_clock::now();
  const Result result;
  ASSERT_TRUE(
      eventually([&] { return pick(stays, Request("back"), result) == 0 && !result.degraded(); }));
  EXPECT_EQ(stays.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_TRUE(eventually([&] { return daemon.endpoints().at("e2").inflight_requests == 0; }));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - started;
  std::printf("5 reservations of a client that did not come back: released after %.0f ms\n",
              took.count());
  EXPECT_EQ(daemon.counter("reservations_released_dead"), 5U);
  EXPECT_EQ(daemon.endpoints().at("e1").inflight_requests, 1U) << "its client is back";
  EXPECT_EQ(stays.report(kept.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemWarmRestart, TakesAnotherAddressInTheFileForAnotherEngine) {
  Daemon daemon;
  const Picked before = pick_prompt(daemon, 1);
  daemon.stop();
  std::string config;
  {
    std::ifstream file(daemon.config());
    config.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t at = config.find(":8000"); at != std::string::npos;
       at = config.find(":8000", at)) {
    config.replace(at, 5, ":8001");
  }
  std::ofstream(daemon.config()) << config;
  daemon.start();
  EXPECT_EQ(pick_prompt(daemon, 1).match_tokens, 0U)
      << "nobody at a new address holds " << before.name << "'s blocks";
}

struct Doubt {
  const char* name;
  const char* reason;
  void (*make)(const std::string& path);
};

void PrintTo(const Doubt& doubt, std::ostream* out) { *out << doubt.name; }

class SystemWarmRestartDoubts : public testing::TestWithParam<Doubt> {};

TEST_P(SystemWarmRestartDoubts, BeginEmptyAndSayWhy) {
  Daemon daemon;
  pick_prompt(daemon, 1);
  daemon.stop();
  GetParam().make(daemon.state());
  daemon.start();
  EXPECT_NE(store_line(daemon).find("empty"), std::string::npos) << store_line(daemon);
  EXPECT_NE(store_line(daemon).find(GetParam().reason), std::string::npos) << store_line(daemon);
  EXPECT_EQ(pick_prompt(daemon, 1).match_tokens, 0U);
  EXPECT_EQ(pick_prompt(daemon, 1).match_tokens, kPromptTokens);
}

void overwrite(const std::string& path, off_t at, const std::string& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), at), static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

const Doubt kDoubts[] = {
    {"Missing", "there was no file", [](const std::string& path) { ::unlink(path.c_str()); }},
    {"Mode", "mode is not 0600", [](const std::string& path) { ::chmod(path.c_str(), 0644); }},
    {"Size", "are wanted",
     [](const std::string& path) { ASSERT_EQ(::truncate(path.c_str(), 10 << 20), 0); }},
    {"Magic", "no state file", [](const std::string& path) { overwrite(path, 0, "garbage!"); }},
    {"Layout", "another version",
     [](const std::string& path) { overwrite(path, 56, std::string(8, '\7')); }},
    {"Boot", "another boot",
     [](const std::string& path) { overwrite(path, 32, std::string(16, '\1')); }},
    {"Symlink", "cannot be opened",
     [](const std::string& path) {
       ASSERT_EQ(::rename(path.c_str(), (path + ".elsewhere").c_str()), 0);
       ASSERT_EQ(::symlink((path + ".elsewhere").c_str(), path.c_str()), 0);
     }},
};

INSTANTIATE_TEST_SUITE_P(All, SystemWarmRestartDoubts, testing::ValuesIn(kDoubts),
                         [](const auto& test) { return test.param.name; });

TEST(SystemWarmRestart, SaysWhichEndpointsHorizonsAreDamagedAndRemembersAtOnceAgain) {
  Daemon daemon;
  for (unsigned seed = 0; seed < 10; ++seed) pick_prompt(daemon, seed);
  daemon.signal(SIGKILL);
  daemon.reap();
  std::fstream file(daemon.state(), std::ios::in | std::ios::out | std::ios::binary);
  abi::StateHeader header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  ASSERT_TRUE(file.good());
  for (std::uint64_t id = 1; id <= 4; ++id) {
    const auto at =
        static_cast<std::streamoff>(header.endpoints_offset + id * sizeof(abi::EndpointRecord));
    std::uint64_t life = 0;
    file.seekg(at).read(reinterpret_cast<char*>(&life), sizeof life);
    life ^= 1U << 16;
    file.seekp(at).write(reinterpret_cast<const char*>(&life), sizeof life);
  }
  file.close();
  daemon.start();
  for (const char* name : {"e0", "e1", "e2", "e3"}) {
    EXPECT_NE(daemon.log().find(std::string("what ") + name + " held is forgotten"),
              std::string::npos)
        << daemon.log();
  }
  EXPECT_EQ(pick_prompt(daemon, 3).match_tokens, 0U);
  EXPECT_EQ(pick_prompt(daemon, 3).match_tokens, kPromptTokens);
}

TEST(SystemWarmRestart, SurvivesRandomDamageOfTheTables) {
  // Words are flipped all over the file but for its header: the daemon goes on, answers, and
  // forgets.
  Daemon daemon;
  for (unsigned seed = 0; seed < 10; ++seed) pick_prompt(daemon, seed);
  daemon.stop();
  struct stat file {};
  ASSERT_EQ(::stat(daemon.state().c_str(), &file), 0);
  std::uint64_t random = 42;
  for (int flip = 0; flip < 20'000; ++flip) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto room = static_cast<std::uint64_t>(file.st_size - 4096 - 8);
    const auto at = static_cast<off_t>(4096 + ((random >> 20) % room & ~7ULL));
    overwrite(daemon.state(), at,
              std::string(reinterpret_cast<const char*>(&random), sizeof random));
  }
  daemon.start();
  for (unsigned seed = 0; seed < 10; ++seed)
    EXPECT_LE(pick_prompt(daemon, seed).match_tokens, kPromptTokens);
  EXPECT_TRUE(eventually([&] { return daemon.counter("prefix_sweep_passes") != 0; }))
      << daemon.log();
  EXPECT_EQ(pick_prompt(daemon, 3).match_tokens, kPromptTokens);
}

}  // namespace
}  // namespace pickd::systests

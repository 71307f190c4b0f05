// Picks while the daemon is away: from the mapped state, with the prefix and the load in mind.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <set>

#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

constexpr std::size_t kPromptBytes = 16'384;
constexpr std::uint32_t kPromptTokens = kPromptBytes / 4;

void kill_and_reap(Daemon& daemon) {
  daemon.signal(SIGKILL);
  daemon.reap();
}

void add_endpoint(const Client& client, const char* name, const char* address, const char* model) {
  pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  endpoint.name = name;
  endpoint.address = address;
  endpoint.role = PICKD_ROLE_DECODE;
  endpoint.models = &model;
  endpoint.model_count = 1;
  ASSERT_EQ(pickd_endpoint_add(client.get(), &endpoint), 0);
}

TEST(SystemDegradedPick, GoesWhereThePrefixIsAndSaysThatItIsDegraded) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  std::vector<std::string> homes;
  pickd_ticket last{};
  for (unsigned seed = 0; seed < 20; ++seed) {
    // Each has the home of as many as the others: none is over its share.
    Request request(prompt_of(kPromptBytes, seed));
    ASSERT_EQ(pick(client, request.subset({"e" + std::to_string(seed % 4)}), result), 0);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
    homes.push_back(result.name());
    last = result.ticket();
  }
  kill_and_reap(daemon);
  for (unsigned seed = 0; seed < 20; ++seed) {
    ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes, seed)), result), 0);
    EXPECT_EQ(pickd_result_status(result.get()), 0);
    EXPECT_TRUE(result.degraded());
    EXPECT_EQ(pickd_result_reason(result.get()), PICKD_REASON_DEGRADED);
    EXPECT_EQ(result.name(), homes[seed]) << seed;
    EXPECT_EQ(std::string(pickd_result_address(result.get(), 0)),
              "10.0.0." + homes[seed].substr(1) + ":8000");
    EXPECT_EQ(result.match_tokens(), kPromptTokens) << seed;
    EXPECT_EQ(result.count(), 4U) << "fallbacks too";
    EXPECT_EQ(result.ticket().client, last.client);
    EXPECT_GT(result.ticket().sequence, last.sequence);
    last = result.ticket();
    EXPECT_EQ(client.report(last, PICKD_REPORT_DONE), 0) << "counted by the library";
  }
}

TEST(SystemDegradedPick, MatchesTheSharedPartOfALongerPrompt) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  const std::string shared = prompt_of(kPromptBytes, 1);
  ASSERT_EQ(pick(client, Request(shared), result), 0);
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  const std::string home = result.name();
  kill_and_reap(daemon);
  // Less than half of what is shared is new, so that its home is the cheapest.
  ASSERT_EQ(pick(client, Request(shared + prompt_of(4096, 2)), result), 0);
  EXPECT_EQ(result.name(), home);
  EXPECT_EQ(result.match_tokens(), kPromptTokens);
  EXPECT_EQ(pickd_result_prompt_tokens(result.get()), kPromptTokens + 1024);
}

TEST(SystemDegradedPick, KeepsToReadyEndpointsAndTheSubset) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  const std::string prompt = prompt_of(kPromptBytes, 1);
  Request at_home(prompt);
  ASSERT_EQ(pick(client, at_home.subset({"e1"}), result), 0);
  ASSERT_EQ(pickd_endpoint_drain(client.get(), "e1", 1), 0);
  kill_and_reap(daemon);
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_EQ(pick(client, Request(prompt), result), 0);
    for (std::size_t at = 0; at < result.count(); ++at) EXPECT_NE(result.name(at), "e1");
  }
  Request drained("hello");
  EXPECT_EQ(pick(client, drained.subset({"e1"}), result), -EHOSTUNREACH);
  EXPECT_EQ(result.count(), 0U);
  Request nobody("hello");
  EXPECT_EQ(pick(client, nobody.subset({}), result), -EHOSTUNREACH);
  Request by_address("hello");
  EXPECT_EQ(pick(client, by_address.subset({"10.0.0.2:8000"}), result), 0);
  EXPECT_EQ(result.name(), "e2");
}

TEST(SystemDegradedPick, KnowsModelsAndRoles) {
  Daemon daemon({.endpoints = 0});
  const Client client(daemon);
  add_endpoint(client, "a", "a:1", "model-a");
  add_endpoint(client, "b", "b:1", "model-b");
  kill_and_reap(daemon);
  const Result result;
  for (const std::string name : {"a", "b"}) {
    const std::string model = "model-" + name;
    Request request("hello");
    request.raw.model = {model.data(), model.size()};
    ASSERT_EQ(pick(client, request, result), 0) << client.last_error();
    EXPECT_EQ(result.name(), name);
    EXPECT_EQ(pickd_result_role(result.get(), 0), PICKD_ROLE_DECODE);
    EXPECT_EQ(result.count(), 1U);
  }
  Request unknown("hello");
  unknown.raw.model = pickd_string("model-c");
  EXPECT_EQ(pick(client, unknown, result), -ENOENT);
}

TEST(SystemDegradedPick, CannotBeMadeWhereNoEndpointIsKnown) {
  Daemon daemon({.endpoints = 0});
  const Client client(daemon);
  kill_and_reap(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), -ENOTCONN);
  EXPECT_NE(client.last_error().find("no endpoint"), std::string::npos) << client.last_error();
}

TEST(SystemDegradedPick, FollowsAResetThatCameBefore) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  Request request(prompt_of(kPromptBytes, 1));
  ASSERT_EQ(pick(client, request.subset({"e1"}), result), 0);
  ASSERT_EQ(pickd_endpoint_reset(client.get(), "e1"), 0);
  kill_and_reap(daemon);
  ASSERT_EQ(pick(client, request, result), 0);
  EXPECT_EQ(result.match_tokens(), 0U) << "its cache is gone";
}

TEST(SystemDegradedPick, IsMadeWhenTheDaemonStandsStillUntilTheDeadline) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes, 1)), result), 0);
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  const std::string home = result.name();
  {
    const Standstill standstill(daemon);
    ASSERT_EQ(pick(client, Request(prompt_of(kPromptBytes, 1)), result, 50'000), 0);
    EXPECT_TRUE(result.degraded());
    EXPECT_EQ(result.name(), home);
    EXPECT_EQ(result.match_tokens(), kPromptTokens);
  }
  // Until its next heartbeat it counts as one that stands still.
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(pick(client, Request(prompt_of(kPromptBytes, 1)), result), 0);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), result.degraded() ? -ESTALE : 0);
    return !result.degraded();
  }));
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }))
      << "what it took meanwhile is back";
}

TEST(SystemDegradedPick, HasATicketThatTheDaemonDoesNotKnow) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  kill_and_reap(daemon);
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  const pickd_ticket ticket = result.ticket();
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_FIRST_TOKEN), 0);
  daemon.start();
  EXPECT_EQ(client.report(ticket, PICKD_REPORT_DONE), -ESTALE);
  EXPECT_EQ(daemon.counter("reports_unknown"), 1U);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemDegradedPick, CountsItsOwnLoadAsItIsReported) {
  Daemon daemon;
  const Client client(daemon);
  kill_and_reap(daemon);
  const Result result;
  const auto load_of = [&](const std::string& name) {
    Request look;
    look.raw.flags |= PICKD_REQUEST_DRY_RUN;
    const Result seen;
    EXPECT_EQ(pick(client, look.subset({name}), seen), 0);
    return -pickd_result_score(seen.get(), 0);
  };
  Request request(prompt_of(kPromptBytes, 1));
  ASSERT_EQ(pick(client, request.subset({"e1", "e2"}), result), 0);
  const std::string home = result.name();
  const std::string other = home == "e1" ? "e2" : "e1";
  const double whole = load_of(home);
  EXPECT_GT(whole, kPromptTokens) << "its prefill, and that it decodes";
  EXPECT_EQ(load_of(other), 0);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0);
  EXPECT_EQ(load_of(home), whole - kPromptTokens) << "the prefill is over";
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0);
  EXPECT_EQ(load_of(home), whole - kPromptTokens) << "once";
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FALLBACK, other), 0);
  EXPECT_EQ(load_of(home), 0);
  EXPECT_EQ(load_of(other), whole - kPromptTokens);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(load_of(other), 0);
}

// ---- Many gateways ------------------------------------------------------------------------------

constexpr int kGatewaysMax = 64;
constexpr int kEndpointsMax = 16;

struct Crowd {
  int gateways = 8;
  int endpoints = 8;
  int picks_each = 200;
  int in_flight_each = 0;  // the oldest ends before the next pick; 0: none ever ends
};

struct Counts {
  std::array<std::array<int, kEndpointsMax>, kGatewaysMax> of{};

  int endpoint(int at) const {
    int sum = 0;
    for (const auto& gateway : of) sum += gateway[static_cast<std::size_t>(at)];
    return sum;
  }
  int most() const {
    int most = 0;
    for (int at = 0; at < kEndpointsMax; ++at) most = std::max(most, endpoint(at));
    return most;
  }
};

int run_gateway(const Crowd& crowd, const Client& client,
                const std::function<std::string(int turn)>& prompt,
                std::array<int, kEndpointsMax>& counts) {
  const Result result;
  std::deque<pickd_ticket> in_flight;
  for (int turn = 0; turn < crowd.picks_each; ++turn) {
    if (crowd.in_flight_each != 0 &&
        in_flight.size() == static_cast<std::size_t>(crowd.in_flight_each)) {
      if (client.report(in_flight.front(), PICKD_REPORT_DONE) != 0) return 3;
      in_flight.pop_front();
    }
    const Request request(prompt(turn));
    if (pick(client, request, result) != 0 || !result.degraded()) return 2;
    in_flight.push_back(result.ticket());
    ++counts[static_cast<std::size_t>(std::stoi(result.name().substr(1)))];
  }
  return 0;
}

// Gateway processes that know nothing of each other pick `prompt(gateway, turn)` without a daemon.
Counts pick_in_gateways(const Crowd& crowd, const std::string& first_prompt,
                        const std::function<std::string(int gateway, int turn)>& prompt) {
  Daemon daemon({.endpoints = static_cast<std::size_t>(crowd.endpoints)});
  void* memory =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* counts = new (memory) Counts;
  {
    const Client client(daemon);
    const Result result;
    EXPECT_EQ(pick(client, Request(first_prompt), result), 0);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  std::vector<std::unique_ptr<Forked>> gateways;
  for (int gateway = 0; gateway < crowd.gateways; ++gateway) {
    gateways.push_back(std::make_unique<Forked>([&, gateway](Forked& self) {
      const Client client(daemon);
      self.say('o');
      if (self.hear() != 'g') return 1;
      return run_gateway(
          crowd, client, [&](int turn) { return prompt(gateway, turn); },
          counts->of[static_cast<std::size_t>(gateway)]);
    }));
  }
  for (const auto& gateway : gateways) EXPECT_EQ(gateway->hear(), 'o');
  kill_and_reap(daemon);
  for (const auto& gateway : gateways) gateway->say('g');
  for (const auto& gateway : gateways) EXPECT_EQ(gateway->wait(), 0);
  const Counts copy = *counts;
  ::munmap(memory, sizeof(Counts));
  return copy;
}

TEST(SystemDegradedPick, SpreadsUnrelatedPromptsOfEightGatewaysOverTheFleet) {
  const Crowd crowd;
  const Counts counts = pick_in_gateways(crowd, "hello", [](int gateway, int turn) {
    return prompt_of(2000, static_cast<unsigned>(1000 * (gateway + 1) + turn));
  });
  const int mean = crowd.gateways * crowd.picks_each / crowd.endpoints;
  std::printf("of %d picks the busiest of 8 endpoints has %d, 1/8 is %d\n", mean * crowd.endpoints,
              counts.most(), mean);
  EXPECT_LE(2 * counts.most(), 3 * mean);
  for (int at = 0; at < crowd.endpoints; ++at) EXPECT_GE(3 * counts.endpoint(at), 2 * mean) << at;
}

TEST(SystemDegradedPick, DoesNotHerdToTheHomeOfAHotPrefix) {
  const std::string hot = prompt_of(kPromptBytes, 7);
  const Crowd crowd;
  const Counts counts = pick_in_gateways(crowd, hot, [&](int, int) { return hot; });
  const int mean = crowd.gateways * crowd.picks_each / crowd.endpoints;
  std::printf("hot prefix: the busiest of 8 endpoints has %d, the mean is %d\n", counts.most(),
              mean);
  EXPECT_LE(counts.most(), 3 * mean);
}

TEST(SystemDegradedPick, DoesNotHerdToTheHomeOfAHotPrefixWhenRequestsEnd) {
  const std::string hot = prompt_of(kPromptBytes, 7);
  const std::string short_hot = prompt_of(800, 7);
  for (const int gateways : {8, kGatewaysMax}) {
    for (const int in_flight : {1, 4, 16, 64}) {
      for (const std::string& prompt : {hot, short_hot}) {
        if (gateways != 8 && in_flight != 1) continue;
        const Crowd crowd{gateways, kEndpointsMax, gateways == 8 ? 200 : 50, in_flight};
        const Counts counts = pick_in_gateways(crowd, prompt, [&](int, int) { return prompt; });
        const int picks = crowd.gateways * crowd.picks_each;
        std::printf("%d gateways with %d in flight each, %zu bytes: busiest %.2f x the mean\n",
                    gateways, in_flight, prompt.size(),
                    static_cast<double>(counts.most() * kEndpointsMax) / picks);
        EXPECT_LE(counts.most() * kEndpointsMax, 3 * picks);
      }
    }
  }
}

TEST(SystemDegradedPick, FindsTheHomeAsFirstFallbackWhereItHadItsShare) {
  Daemon daemon({.endpoints = 8});
  const Client client(daemon);
  const Result result;
  const Request request(prompt_of(kPromptBytes, 1));
  ASSERT_EQ(pick(client, request, result), 0);
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  const std::string home = result.name();
  kill_and_reap(daemon);
  int elsewhere = 0;
  for (int turn = 0; turn < 50; ++turn) {
    ASSERT_EQ(pick(client, request, result), 0);
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
    ASSERT_EQ(result.count(), 8U);
    elsewhere += result.name() == home ? 0 : 1;
    EXPECT_EQ(result.name(result.name() == home ? 0 : 1), home);
  }
  EXPECT_GT(elsewhere, 25);
}

}  // namespace
}  // namespace pickd::systests

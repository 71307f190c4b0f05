// The policies that operators get by name: round-robin, least-request, and the weights of the
// others.
#include <set>

#include "daemon/pick/builtin_profiles.hpp"
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

RigOptions named(const char* profile) {
  RigOptions options;
  options.profile = profile;
  return options;
}

TEST(RoundRobin, TakesEveryEndpointInTurn) {
  PickRig rig(named("round-robin"));
  rig.add_endpoints(5);
  for (int round = 0; round < 20; ++round) {
    Tally tally;
    for (int turn = 0; turn < 5; ++turn) ++tally[rig.winner(rig.request())];
    ASSERT_EQ(tally.size(), 5U) << round;
  }
  EXPECT_EQ(rig.pick(rig.request()).reason, abi::Reason::kPolicy);
}

TEST(RoundRobin, HeedsNeitherLoadNorPrefix) {
  PickRig rig(named("round-robin"));
  rig.add_endpoints(2);
  const auto keys = chain(1, 20);
  Tally tally;
  for (int turn = 0; turn < 100; ++turn) {
    ++tally[rig.winner(rig.request(keys))];
    rig.set_load("e1", 1000, 1'000'000);
  }
  EXPECT_EQ(tally["e1"], 50U);
}

// A counter folded by the number of candidates would lock to fixed winners here.
TEST(RoundRobin, StaysFairWhenTheCandidatesChangeWithEveryRequest) {
  PickRig rig(named("round-robin"));
  rig.add_endpoints(6);
  const std::vector<std::vector<std::string_view>> subsets = {
      {"e1", "e2", "e3"}, {"e4", "e5", "e6"}, {"e1", "e4"}, {"e2", "e5"}, {"e3", "e6"}};
  Tally tally;
  for (int turn = 0; turn < 6000; ++turn) {
    auto request = rig.request();
    request.has_subset = true;
    request.subset = subsets[static_cast<std::size_t>(turn) % subsets.size()];
    ++tally[rig.served(request)];
  }
  ASSERT_EQ(tally.size(), 6U);
  for (const auto& [name, count] : tally) {
    EXPECT_GE(count, 900U) << name;
    EXPECT_LE(count, 1100U) << name;
  }
}

TEST(RoundRobin, GivesANewEndpointOneTurnARound) {
  PickRig rig(named("round-robin"));
  rig.add_endpoints(3);
  for (int turn = 0; turn < 300; ++turn) rig.winner(rig.request());
  rig.add(rig.spec("late"));
  Tally tally;
  for (int turn = 0; turn < 40; ++turn) ++tally[rig.winner(rig.request())];
  EXPECT_EQ(tally["late"], 10U) << "not everything until it has caught up";
}

TEST(RoundRobin, TakesNoTurnInADryRun) {
  PickRig rig(named("round-robin"));
  rig.add_endpoints(3);
  auto dry = rig.request();
  dry.dry_run = true;
  const std::string next = rig.name(rig.pick(dry));
  for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(rig.name(rig.pick(dry)), next);
  EXPECT_EQ(rig.winner(rig.request()), next);
}

TEST(RoundRobin, ListsTheNextTurnsAsFallbacks) {
  PickRig rig(named("round-robin"));
  rig.add_endpoints(4);
  const auto names = rig.names(rig.pick(rig.request()));
  ASSERT_EQ(names.size(), 4U);
  for (std::size_t at = 1; at < 4; ++at) EXPECT_EQ(rig.winner(rig.request()), names[at]);
}

TEST(LeastRequest, TakesTheEndpointWithTheFewestOfOurRequests) {
  PickRig rig(named("least-request"));
  rig.add_endpoints(4);
  rig.set_load("e1", 4, 0);
  rig.set_load("e2", 2, 0);
  rig.set_load("e3", 7, 0);
  rig.set_load("e4", 3, 0);
  EXPECT_EQ(rig.winner(rig.request()), "e2");  // 4 3 7 3 now
  Tally tally;
  for (int turn = 0; turn < 2; ++turn) ++tally[rig.winner(rig.request())];
  EXPECT_EQ(tally, (Tally{{"e2", 1}, {"e4", 1}}));
}

TEST(LeastRequest, LevelsWhateverIsInFlight) {
  PickRig rig(named("least-request"));
  rig.add_endpoints(7);
  const auto keys = chain(1, 5);
  Tally tally;
  for (int turn = 0; turn < 70; ++turn) ++tally[rig.winner(rig.request(keys))];
  ASSERT_EQ(tally.size(), 7U);
  for (const auto& [name, count] : tally) EXPECT_EQ(count, 10U) << name;
}

// prefix 3, active-request 2, token-load 2
TEST(DefaultPolicy, SumsPrefixActiveRequestsAndTokenLoad) {
  PickRig rig;
  rig.add_endpoints(2);
  const auto keys = chain(1, 8);
  const auto now = static_cast<std::uint32_t>(rig.tick);
  rig.table().stamp(std::span(keys).first(4), 1, now, abi::Tier::kAssumed, now);
  rig.set_load("e1", 4, 1'048'576 - 256);
  rig.set_load("e2", 2, 0);
  auto request = rig.request(keys);
  request.dry_run = true;
  const auto scores = rig.scores(request);
  // e1: 3 x 4/8 + 2 x (4 - 4)/4 + 2 x (1 - 1,048,576 / 4,194,304)
  EXPECT_NEAR(scores.at("e1"), 1.5 + 0 + 1.5, 1e-5);
  // e2: 0 + 2 x (4 - 2)/4 + 2 x (1 - 512 / 4,194,304)
  EXPECT_NEAR(scores.at("e2"), 1 + 2 * (1 - 512.0 / 4'194'304), 1e-5);
}

// queue 2, kv 2, prefix 3
TEST(EppDefault, SumsQueueKvUseAndPrefix) {
  PickRig rig(named("epp-default"));
  rig.add_endpoints(2);
  const auto keys = chain(1, 8);
  const auto now = static_cast<std::uint32_t>(rig.tick);
  rig.table().stamp(std::span(keys).first(2), 2, now, abi::Tier::kAssumed, now);
  rig.record("e1").waiting.store(1);
  rig.record("e2").waiting.store(5);
  rig.record("e1").kv_use_ppm.store(500'000);
  rig.record("e2").kv_use_ppm.store(100'000);
  const auto scores = rig.scores(rig.request(keys));
  EXPECT_NEAR(scores.at("e1"), 2 * 1 + 2 * 0.5 + 0, 1e-5);
  EXPECT_NEAR(scores.at("e2"), 0 + 2 * 0.9 + 3 * 0.25, 1e-5);
}

TEST(BuiltinProfiles, CanAllBeMadeAndPick) {
  ASSERT_GE(builtin_profiles().size(), 4U);
  for (const BuiltinProfile& profile : builtin_profiles()) {
    RigOptions options;
    options.profile = std::string(profile.name);
    PickRig rig(options);
    rig.add_endpoints(3);
    EXPECT_EQ(rig.pick(rig.request()).status, 0) << profile.name;
    EXPECT_FALSE(profile.summary.empty()) << profile.name;
  }
}

}  // namespace
}  // namespace pickd::pick::test

// The peers' policies by name, and the field cases they were known for.
#include <cmath>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

RigOptions named(const char* profile) {
  RigOptions options;
  options.profile = profile;
  options.lines = 1 << 16;
  return options;
}

void hold(PickRig& rig, std::span<const std::uint64_t> keys, std::uint32_t endpoint) {
  const auto now = static_cast<std::uint32_t>(rig.tick);
  rig.table().stamp(keys, endpoint, now, abi::Tier::kAssumed, now);
}

std::string would_take(PickRig& rig, PickRequest request) {
  request.dry_run = true;
  return rig.winner(request);
}

std::uint32_t largest(const Tally& tally) {
  std::uint32_t found = 0;
  for (const auto& [name, count] : tally) found = std::max(found, count);
  return found;
}

// (1 + lowest) / ..: cost = 1 + max(0, prefill + prompt - cached) / 64 + prompts / 64
TEST(DynamoCost, AddsWhatIsToPrefillAndWhatIsDecoded) {
  PickRig rig(named("dynamo-cost"));
  rig.add_endpoints(3);
  const auto keys = chain(1, 10);
  hold(rig, std::span(keys).first(6), 1);
  rig.set_load("e1", 3, 320);  // 1 + (320 + 640 - 384) / 64 + 16 = 26
  rig.record("e1").inflight_prompts.store(abi::CountWord::make(rig.generation("e1"), 1024).bits);
  rig.set_load("e2", 1, 128);  // 1 + (128 + 640) / 64 = 13
  // e3: 1 + 640 / 64 = 11
  const auto scores = rig.scores(rig.request(keys));
  EXPECT_NEAR(scores.at("e1"), 11.0 / 26, 1e-5);
  EXPECT_NEAR(scores.at("e2"), 11.0 / 13, 1e-5);
  EXPECT_NEAR(scores.at("e3"), 1, 1e-5);
}

TEST(DynamoCost, CountsPromptsInFlightUntilTheirEnd) {
  PickRig rig(named("dynamo-cost"));
  rig.add_endpoints(2);
  const auto request = rig.request({}, 640);
  const std::string first = rig.winner(request);
  rig.reservations().first_token(request.ticket, PickRig::kUid);
  EXPECT_NE(would_take(rig, rig.request({}, 64)), first) << "still decoding there";
  rig.reservations().end(request.ticket, PickRig::kUid);
  for (const char* name : {"e1", "e2"})
    EXPECT_EQ(abi::CountWord{rig.record(name).inflight_prompts.load()}.count(), 0U);
}

// uncached x (requests + 1)
TEST(Lmetric, MultipliesUncachedTokensAndRequests) {
  PickRig rig(named("lmetric"));
  rig.add_endpoints(3);
  const auto keys = chain(1, 10);
  hold(rig, std::span(keys).first(8), 1);
  rig.set_load("e1", 9, 0);  // 128 x 10 = 1280
  rig.set_load("e2", 1, 0);  // 640 x 2 = 1280
  rig.set_load("e3", 2, 0);  // 640 x 3 = 1920
  const auto scores = rig.scores(rig.request(keys));
  EXPECT_NEAR(scores.at("e1"), 1, 1e-5);
  EXPECT_NEAR(scores.at("e2"), 1, 1e-5);
  EXPECT_NEAR(scores.at("e3"), 1280.0 / 1920, 1e-5);
}

TEST(Lmetric, DoesNotSendEverythingToOneThatHoldsItAll) {
  PickRig rig(named("lmetric"));
  rig.add_endpoints(2);
  const auto keys = chain(1, 10);
  hold(rig, keys, 1);
  hold(rig, keys, 2);
  rig.set_load("e1", 50, 0);
  EXPECT_EQ(would_take(rig, rig.request(keys)), "e2");
}

TEST(SglangCacheAware, TakesALongMatchWhileLoadsAreEven) {
  PickRig rig(named("sglang-cache-aware"));
  rig.add_endpoints(3);
  const auto keys = chain(1, 10);
  hold(rig, std::span(keys).first(4), 2);
  rig.set_load("e1", 1, 0);
  rig.set_load("e2", 20, 0);
  rig.set_load("e3", 2, 0);
  EXPECT_EQ(would_take(rig, rig.request(keys)), "e2") << "4 of 10 is above 0.3";
  const auto longer = chain(2, 20, {keys.begin(), keys.begin() + 4});
  EXPECT_EQ(would_take(rig, rig.request(longer)), "e1") << "4 of 24 is not: the least loaded";
  rig.set_load("e2", 66, 0);
  EXPECT_EQ(would_take(rig, rig.request(keys)), "e1") << "66 - 1 is above 64, and above 1.5 x 1";
}

// Field case 19: a threshold on the imbalance of loads turns affinity into load balancing, and
// nobody sees it. Which of the two it was is the reason of the pick.
TEST(SglangCacheAware, SaysByTheReasonWhetherAffinityOrLoadDecided) {
  RigOptions options;
  options.profile = "sglang-cache-aware";
  for (const std::uint32_t difference : {11U, 100U}) {
    PickRig rig(options);
    rig.add_endpoints(3);
    const auto keys = chain(1, 20);
    auto first = rig.request(keys);
    const std::string_view holder[] = {"e1"};
    first.subset = holder;
    first.has_subset = true;
    rig.pick(first);
    rig.set_load("e1", difference, 0);
    const PickResult result = rig.pick_only(rig.request(keys));
    if (difference == 11) {
      EXPECT_EQ(rig.name(result), "e1") << "a difference of 11 is within the default of 64";
      EXPECT_NE(result.reason, abi::Reason::kTie);
      EXPECT_EQ(result.endpoints[0].match_blocks, 20U);
    } else {
      EXPECT_NE(rig.name(result), "e1");
      EXPECT_EQ(result.reason, abi::Reason::kTie) << "by load, and two are idle";
    }
  }
}

// Field case 8: loads 10, 12, 60; cached on the one with 12.
TEST(PeersFieldCases, AnUnevenThirdDoesNotDriveARequestFromItsCache) {
  for (const char* profile : {"sglang-cache-aware", "lmetric", "dynamo-cost", "epp-affinity"}) {
    PickRig rig(named(profile));
    rig.add_endpoints(3);
    const auto keys = chain(1, 40);
    hold(rig, keys, 2);
    rig.set_load("e1", 10, 10'000);
    rig.set_load("e2", 12, 12'000);
    rig.set_load("e3", 60, 60'000);
    EXPECT_EQ(would_take(rig, rig.request(keys)), "e2") << profile;
  }
}

// Field case 4: a miss at low concurrency always went to the first.
TEST(PeersFieldCases, DistinctPromptsOneAtATimeUseEveryEndpoint) {
  for (const char* profile : {"sglang-cache-aware", "lmetric", "dynamo-cost", "epp-affinity",
                              "chwbl", "least-request", "round-robin"}) {
    PickRig rig(named(profile));
    rig.add_endpoints(4);
    Tally tally;
    for (std::uint64_t prompt = 0; prompt < 400; ++prompt)
      ++tally[rig.served(rig.request(chain(prompt, 10)))];
    ASSERT_EQ(tally.size(), 4U) << profile;
    for (const auto& [name, count] : tally) {
      EXPECT_GE(count, 65U) << profile << " " << name;
      EXPECT_LE(count, 135U) << profile << " " << name;
    }
  }
}

// Field case 5: whoever holds few blocks got every miss.
TEST(PeersFieldCases, AMissGoesToTheIdleOneHoweverMuchItHolds) {
  for (const char* profile : {"sglang-cache-aware", "lmetric", "dynamo-cost", "epp-affinity"}) {
    PickRig rig(named(profile));
    rig.add_endpoints(2);
    hold(rig, chain(1, 10), 1);
    hold(rig, chain(2, 10'000), 2);
    rig.set_load("e1", 50, 50'000);
    rig.record("e1").inflight_prompts.store(
        abi::CountWord::make(rig.generation("e1"), 50'000).bits);
    for (std::uint64_t prompt = 0; prompt < 40; ++prompt)
      ASSERT_EQ(rig.served(rig.request(chain(100 + prompt, 20))), "e2") << profile;
  }
}

// Field case 13: shares of a hash, with lost completions that expire.
TEST(Chwbl, SharesKeysEvenlyAndLostCompletionsExpire) {
  PickRig rig(named("chwbl"));
  rig.add_endpoints(10);
  Tally tally;
  std::uint32_t cursor = 0;
  for (std::uint64_t key = 0; key < 10'000; ++key) {
    const auto keys = chain(key, 3);
    const auto request = rig.request(keys);
    ++tally[rig.winner(request)];
    if (key % 100 != 0) rig.reservations().end(request.ticket, PickRig::kUid);
    ++rig.tick;
    rig.reservations().expire_slice(&cursor, PickRig::kSlots / 16, rig.tick, 600);
  }
  ASSERT_EQ(tally.size(), 10U);
  EXPECT_LT(largest(tally), 1300U);
  rig.tick += 601;
  rig.reservations().expire_slice(&cursor, PickRig::kSlots, rig.tick, 600);
  for (int at = 1; at <= 10; ++at) EXPECT_EQ(rig.inflight("e" + std::to_string(at)), 0U);
}

TEST(Chwbl, KeepsAPromptsBeginningInOnePlaceAndMovesFewWhenOneGoes) {
  PickRig rig(named("chwbl"));
  rig.add_endpoints(10);
  std::map<std::uint64_t, std::string> before;
  for (std::uint64_t key = 0; key < 500; ++key) {
    before[key] = rig.served(rig.request(chain(key, 3)));
    const auto longer = chain(1000 + key, 10, chain(key, 3));
    ASSERT_EQ(rig.served(rig.request(longer)), before[key]);
  }
  rig.set_state("e4", abi::EndpointState::kDraining);
  for (const auto& [key, name] : before) {
    if (name == "e4") continue;
    ASSERT_EQ(rig.served(rig.request(chain(key, 3))), name);
  }
}

// Field case 14: 300 endpoints, 60 in flight, a hot key: the bound is below one.
TEST(Chwbl, TakesTheLeastLoadedWhenTheBoundIsBelowOne) {
  RigOptions options = named("chwbl");
  options.ids = 512;
  PickRig rig(options);
  rig.add_endpoints(300);
  const auto hot = chain(7, 4);
  Tally tally;
  for (int turn = 0; turn < 60; ++turn) ++tally[rig.winner(rig.request(hot))];
  EXPECT_EQ(tally.size(), 60U) << "each to an idle one";
  // One each: two would be above 1.25 x 301 / 300, so nobody is within the bound.
  for (int at = 1; at <= 300; ++at) rig.set_load("e" + std::to_string(at), 1, 0);
  Tally full;
  for (std::uint64_t key = 0; key < 50; ++key) {
    const auto keys = chain(100 + key, 4);
    ++full[would_take(rig, rig.request(keys))];
  }
  EXPECT_GT(full.size(), 30U) << "never just the first";
}

// Field case 16: the extremes of {7}, {7, 0} and {}.
TEST(PeersFieldCases, TheImbalanceOfOneTwoAndNoEndpoints) {
  PickRig rig(named("sglang-cache-aware"));
  EXPECT_EQ(rig.pick(rig.request()).status, -EHOSTUNREACH) << "no endpoints, without a fault";
  rig.add_endpoints(1);
  rig.set_load("e1", 7, 0);
  EXPECT_EQ(rig.pick(rig.request(chain(1, 4))).status, 0);
  rig.add(rig.spec("e2"));
  rig.set_load("e1", 100, 0);  // 100 and 0: uneven, the first one counts
  const auto keys = chain(1, 4);
  hold(rig, keys, 1);
  EXPECT_EQ(would_take(rig, rig.request(keys)), "e2");
}

// Case 7 for those that count at the pick.
TEST(PeersFieldCases, AHundredPicksAtOnceSpreadBeforeAnyStreamBegins) {
  for (const char* profile : {"sglang-cache-aware", "lmetric", "dynamo-cost", "epp-affinity"}) {
    PickRig rig(named(profile));
    rig.add_endpoints(4);
    Tally tally;
    for (std::uint64_t prompt = 0; prompt < 100; ++prompt)
      ++tally[rig.winner(rig.request(chain(prompt, 512)))];
    ASSERT_EQ(tally.size(), 4U) << profile;
    EXPECT_LE(largest(tally), 27U) << profile;
  }
}

}  // namespace
}  // namespace pickd::pick::test

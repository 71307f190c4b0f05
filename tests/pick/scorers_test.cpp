// Each scorer alone, with weight 1, against values computed by hand from the formulas of the
// Endpoint Picker: what the sum of one scorer is, is its score.
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

RigOptions only(const std::string& type, const std::string& parameters = "") {
  RigOptions options;
  options.scheduling = scheduling({{type, 1.0, parameters}});
  return options;
}

using Scores = std::map<std::string, float>;

void expect_scores(const Scores& got, const Scores& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, score] : wanted) EXPECT_NEAR(got.at(name), score, 1e-6) << name;
}

// (maxQ - q) / (maxQ - minQ)
TEST(QueueScorer, PlacesEachQueueBetweenTheShortestAndTheLongest) {
  PickRig rig(only("queue-scorer"));
  rig.add_endpoints(4);
  const std::uint32_t waiting[] = {10, 2, 4, 8};
  for (int at = 0; at < 4; ++at)
    rig.record("e" + std::to_string(at + 1)).waiting.store(waiting[at]);
  expect_scores(rig.scores(rig.request()), {{"e1", 0}, {"e2", 1}, {"e3", 0.75F}, {"e4", 0.25F}});
}

TEST(QueueScorer, GivesOneToAllWhenTheQueuesAreEqual) {
  PickRig rig(only("queue-scorer"));
  rig.add_endpoints(2);
  for (const char* name : {"e1", "e2"}) rig.record(name).waiting.store(7);
  expect_scores(rig.scores(rig.request()), {{"e1", 1}, {"e2", 1}});
}

TEST(QueueScorer, LeavesUnknownQueuesOutOfTheRangeAndWithoutAScore) {
  PickRig rig(only("queue-scorer"));
  rig.add_endpoints(3);
  rig.record("e1").waiting.store(5);
  rig.record("e3").waiting.store(9);  // e2 told nothing
  expect_scores(rig.scores(rig.request()), {{"e1", 1}, {"e2", 0}, {"e3", 0}});
  EXPECT_EQ(rig.counted(abi::Counter::plugin_failures), 0U) << "unknown is no failure";
}

TEST(QueueScorer, SaysNothingWhenNobodyToldAQueue) {
  PickRig rig(only("queue-scorer"));
  rig.add_endpoints(2);
  const auto result = rig.pick(rig.request());
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.reason, abi::Reason::kTie);
}

// An endpoint that may not be picked enters no range.
TEST(QueueScorer, DoesNotCountTheQueueOfAnEndpointThatIsNoCandidate) {
  PickRig rig(only("queue-scorer"));
  rig.add_endpoints(3);
  rig.record("e1").waiting.store(2);
  rig.record("e2").waiting.store(4);
  rig.record("e3").waiting.store(1000);
  rig.set_state("e3", abi::EndpointState::kDraining);
  expect_scores(rig.scores(rig.request()), {{"e1", 1}, {"e2", 0}});
}

// 1 - usage
TEST(KvCacheUtilizationScorer, IsTheShareThatIsFree) {
  PickRig rig(only("kv-cache-utilization-scorer"));
  rig.add_endpoints(4);
  rig.record("e1").kv_use_ppm.store(0);
  rig.record("e2").kv_use_ppm.store(250'000);
  rig.record("e3").kv_use_ppm.store(1'000'000);  // e4 told nothing
  expect_scores(rig.scores(rig.request()), {{"e1", 1}, {"e2", 0.75F}, {"e3", 0}, {"e4", 0}});
  EXPECT_EQ(rig.counted(abi::Counter::plugin_failures), 0U);
}

// n <= idleThreshold (0): 1, else (max - n) / max x maxBusyScore (1)
TEST(ActiveRequestScorer, ComparesWithTheBusiest) {
  PickRig rig(only("active-request-scorer"));
  rig.add_endpoints(4);
  rig.set_load("e1", 0, 0);
  rig.set_load("e2", 1, 0);
  rig.set_load("e3", 3, 0);
  rig.set_load("e4", 4, 0);
  expect_scores(rig.scores(rig.request()), {{"e1", 1}, {"e2", 0.75F}, {"e3", 0.25F}, {"e4", 0}});
}

TEST(ActiveRequestScorer, HonoursItsThresholdAndItsBusyScore) {
  PickRig rig(only("active-request-scorer", "{idleThreshold: 2, maxBusyScore: 0.5}"));
  rig.add_endpoints(3);
  rig.set_load("e1", 2, 0);
  rig.set_load("e2", 5, 0);
  rig.set_load("e3", 10, 0);
  expect_scores(rig.scores(rig.request()), {{"e1", 1}, {"e2", 0.25F}, {"e3", 0}});
}

// 1 - min(1, (in flight + own uncached) / 4,194,304)
TEST(TokenLoadScorer, CountsWhatIsInFlightAndThisRequest) {
  PickRig rig(only("token-load-scorer"));
  rig.add_endpoints(3);
  rig.set_load("e1", 0, 0);
  rig.set_load("e2", 1, 1'048'576);
  rig.set_load("e3", 9, 5'000'000);
  auto request = rig.request({}, 1'048'576);
  request.dry_run = true;
  expect_scores(rig.scores(request), {{"e1", 0.75F}, {"e2", 0.5F}, {"e3", 0}});
}

TEST(TokenLoadScorer, CountsOnlyTheTokensThatAreNotCachedThere) {
  PickRig rig(only("token-load-scorer", "{queueThresholdTokens: 1000}"));
  rig.add_endpoints(2);
  const auto keys = chain(1, 10);  // 640 tokens
  rig.table().stamp(std::span(keys).first(5), 1, static_cast<std::uint32_t>(rig.tick),
                    abi::Tier::kAssumed, static_cast<std::uint32_t>(rig.tick));
  // e1 holds 320 of the 640 tokens.
  expect_scores(rig.scores(rig.request(keys)), {{"e1", 0.68F}, {"e2", 0.36F}});
}

// (1 - w) match / total + w min(1, matched tokens / scale)^2
TEST(PrefixCacheScorer, IsTheShareOfTheBlocksThatMatch) {
  PickRig rig(only("prefix-cache-scorer"));
  rig.add_endpoints(3);
  const auto keys = chain(1, 8);
  const auto now = static_cast<std::uint32_t>(rig.tick);
  rig.table().stamp(keys, 1, now, abi::Tier::kAssumed, now);
  rig.table().stamp(std::span(keys).first(2), 2, now, abi::Tier::kAssumed, now);
  expect_scores(rig.scores(rig.request(keys)), {{"e1", 1}, {"e2", 0.25F}, {"e3", 0}});
}

TEST(PrefixCacheScorer, AddsTheLengthOfTheMatchWhenTold) {
  PickRig rig(only("prefix-cache-scorer", "{matchLengthWeight: 0.5, matchLengthScaleTokens: 512}"));
  rig.add_endpoints(2);
  const auto keys = chain(1, 16);
  const auto now = static_cast<std::uint32_t>(rig.tick);
  rig.table().stamp(std::span(keys).first(4), 1, now, abi::Tier::kAssumed, now);  // 256 tokens
  rig.table().stamp(keys, 2, now, abi::Tier::kAssumed, now);                      // 1,024 tokens
  // e1: 0.5 x 4/16 + 0.5 x (256/512)^2; e2: 0.5 x 1 + 0.5 x min(1, 2)^2
  expect_scores(rig.scores(rig.request(keys)), {{"e1", 0.25F}, {"e2", 1}});
}

TEST(PrefixCacheScorer, IsZeroForARequestWithoutAPrompt) {
  PickRig rig(only("prefix-cache-scorer"));
  rig.add_endpoints(2);
  expect_scores(rig.scores(rig.request()), {{"e1", 0}, {"e2", 0}});
}

// A prompt longer than the longest prefix that counts: what counts is all there is to match.
TEST(PrefixCacheScorer, TakesTheLongestPrefixThatCountsForTheWhole) {
  RigOptions options = only("prefix-cache-scorer");
  options.blocks_max = 4;
  PickRig rig(options);
  rig.add_endpoints(2);
  const auto keys = chain(1, 16);
  ASSERT_EQ(rig.pick(rig.request(keys)).status, 0);
  Scores scores = rig.scores(rig.request(keys));
  EXPECT_NEAR(std::max(scores.at("e1"), scores.at("e2")), 1, 1e-6);
  EXPECT_NEAR(std::min(scores.at("e1"), scores.at("e2")), 0, 1e-6);
}

// active 1.0; room (active + waiting < max) 0.8; waiting there 0.6; else 0
TEST(LoraAffinityScorer, PrefersLoadedThenRoomThenLoading) {
  PickRig rig(only("lora-affinity-scorer"));
  const auto add = [&](const char* name, std::uint32_t most, std::vector<std::string> active,
                       std::vector<std::string> waiting) {
    auto spec = rig.spec(name);
    spec.adapters_max = most;
    spec.adapters_active = std::move(active);
    spec.adapters_waiting = std::move(waiting);
    rig.add(spec);
  };
  add("loaded", 2, {"a", "b"}, {});
  add("room", 3, {"b"}, {"c"});
  add("loading", 2, {"b"}, {"a"});
  add("full", 2, {"b"}, {"c"});
  rig.add(rig.spec("silent"));  // tells no adapters: unknown
  auto request = rig.request();
  request.adapter = "a";
  request.dry_run = true;
  expect_scores(rig.scores(request),
                {{"loaded", 1}, {"room", 0.8F}, {"loading", 0.6F}, {"full", 0}, {"silent", 0}});
  EXPECT_EQ(rig.counted(abi::Counter::plugin_failures), 0U);
}

TEST(LoraAffinityScorer, SaysNothingOfARequestWithoutAdapter) {
  PickRig rig(only("lora-affinity-scorer"));
  auto spec = rig.spec("a");
  spec.adapters_max = 4;
  rig.add(spec);
  expect_scores(rig.scores(rig.request()), {{"a", 0}});
}

TEST(LoraAffinityScorer, TakesAnAdapterThatWeSentThereForLoaded) {
  PickRig rig(only("lora-affinity-scorer"));
  for (const char* name : {"x", "y", "z"}) {
    auto spec = rig.spec(name);
    spec.adapters_max = 2;
    rig.add(spec);
  }
  auto request = rig.request();
  request.adapter = "a";
  const std::string first = rig.winner(request);
  for (int turn = 0; turn < 20; ++turn) {
    auto again = rig.request();
    again.adapter = "a";
    ASSERT_EQ(rig.winner(again), first);
  }
  auto other = rig.request();
  other.adapter = "b";
  other.dry_run = true;
  for (const auto& [name, score] : rig.scores(other)) EXPECT_NEAR(score, 0.8F, 1e-6) << name;
}

TEST(LoraAffinityScorer, RemembersAsManyAdaptersAsTheEngineHasRoomFor) {
  PickRig rig(only("lora-affinity-scorer"));
  auto spec = rig.spec("x");
  spec.adapters_max = 2;
  rig.add(spec);
  for (const char* adapter : {"a", "b", "c"}) {
    auto request = rig.request();
    request.adapter = adapter;
    rig.pick(request);
  }
  const auto score = [&](const char* adapter) {
    auto request = rig.request();
    request.adapter = adapter;
    request.dry_run = true;
    return rig.scores(request).at("x");
  };
  EXPECT_NEAR(score("c"), 1, 1e-6);
  EXPECT_NEAR(score("b"), 1, 1e-6);
  EXPECT_NEAR(score("a"), 0.8F, 1e-6) << "the oldest gave way";
}

// Field case 23, for adapters: a late memory of an engine that was replaced.
TEST(LoraAffinityScorer, DropsTheLateMemoryOfAnEngineThatWasReset) {
  PickRig rig(only("lora-affinity-scorer"));
  auto spec = rig.spec("x");
  spec.adapters_max = 2;
  rig.add(spec);
  auto request = rig.request();
  request.adapter = "a";
  const PickResult result = rig.pick_only(request);
  ASSERT_TRUE(rig.endpoint_table().reset("x", rig.tick).ok());
  rig.remember(request, result);
  for (const abi::HalfWord& adapter : rig.record("x").adapters_recent)
    EXPECT_EQ(adapter.load(), 0U);
}

}  // namespace
}  // namespace pickd::pick::test

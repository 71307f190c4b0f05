// The scorers that look at engines, labels, headers and turns, against values computed by hand from
// the Endpoint Picker's formulas.
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

using Scores = std::map<std::string, float>;

RigOptions only(const std::string& type, const std::string& parameters = "") {
  RigOptions options;
  options.scheduling = scheduling({{type, 1.0, parameters}});
  return options;
}

void expect_scores(const Scores& got, const Scores& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, score] : wanted) EXPECT_NEAR(got.at(name), score, 1e-5) << name;
}

endpoints::EndpointSpec labelled(PickRig& rig, const std::string& name,
                                 std::vector<std::pair<std::string, std::string>> labels) {
  auto spec = rig.spec(name);
  spec.labels = std::move(labels);
  return spec;
}

// (max - running) / (max - min)
TEST(RunningRequestsSizeScorer, PlacesEachBetweenTheLeastAndTheMost) {
  PickRig rig(only("running-requests-size-scorer"));
  rig.add_endpoints(4);
  rig.record("e1").running.store(20);
  rig.record("e2").running.store(12);
  rig.record("e3").running.store(10);  // e4 told nothing
  expect_scores(rig.scores(rig.request()), {{"e1", 0}, {"e2", 0.8F}, {"e3", 1}, {"e4", 0}});
}

TEST(RunningRequestsSizeScorer, GoesByOurOwnRequestsWhenNobodyTells) {
  PickRig rig(only("running-requests-size-scorer"));
  rig.add_endpoints(3);
  rig.set_load("e1", 6, 0);
  rig.set_load("e2", 2, 0);
  rig.set_load("e3", 3, 0);
  expect_scores(rig.scores(rig.request()), {{"e1", 0}, {"e2", 1}, {"e3", 0.75F}});
}

// q = 0: 0.5; else 0.5 (1 - min(q, T) / T), T = 128
TEST(LoadAwareScorer, FallsFromAHalfWithTheQueue) {
  PickRig rig(only("load-aware-scorer"));
  rig.add_endpoints(4);
  rig.record("e1").waiting.store(0);
  rig.record("e2").waiting.store(32);
  rig.record("e3").waiting.store(128);
  rig.record("e4").waiting.store(500);
  expect_scores(rig.scores(rig.request()), {{"e1", 0.5F}, {"e2", 0.375F}, {"e3", 0}, {"e4", 0}});
}

TEST(LoadAwareScorer, HonoursItsThreshold) {
  PickRig rig(only("load-aware-scorer", "{threshold: 10}"));
  rig.add_endpoints(2);
  rig.record("e1").waiting.store(4);
  expect_scores(rig.scores(rig.request()), {{"e1", 0.3F}, {"e2", 0}});
}

// In range 0.3 + 0.7 (0.7 / (1 + width / 10000) + 0.3 headroom / width); outside
// 0.3 / (1 + distance / 1000); without a label 0.5.
TEST(ContextLengthAware, PrefersTheNarrowestRangeThatFits) {
  PickRig rig(only("context-length-aware"));
  const char* label = "llm-d.ai/context-length-range";
  rig.add(labelled(rig, "narrow", {{label, "0-2048"}}));
  rig.add(labelled(rig, "wide", {{label, "0-10000"}}));
  rig.add(labelled(rig, "below", {{label, "0-500"}}));
  rig.add(labelled(rig, "above", {{label, "4000-8000"}}));
  rig.add(labelled(rig, "exact", {{label, "1000-1000"}}));
  rig.add(labelled(rig, "broken", {{label, "2048"}}));
  rig.add(rig.spec("none"));
  expect_scores(rig.scores(rig.request({}, 1000)),
                {{"narrow", 0.3F + 0.7F * (0.7F / 1.2048F + 0.3F * 1048.0F / 2048.0F)},
                 {"wide", 0.3F + 0.7F * (0.35F + 0.3F * 0.9F)},
                 {"below", 0.3F / 1.5F},
                 {"above", 0.3F / 4.0F},
                 {"exact", 0.79F},
                 {"broken", 0.5F},
                 {"none", 0.5F}});
}

TEST(ContextLengthAware, FiltersWhenToldSo) {
  PickRig rig(only("context-length-aware", "{enableFiltering: true, label: range}"));
  rig.add(labelled(rig, "short", {{"range", "0-100"}}));
  rig.add(labelled(rig, "long", {{"range", "101-1000"}}));
  rig.add(rig.spec("any"));
  expect_scores(rig.scores(rig.request({}, 101)),
                {{"long", 0.3F + 0.7F * (0.7F / 1.0899F + 0.3F)}, {"any", 0.5F}});
}

TEST(NoHitLruScorer, RanksPromptsThatNobodyHoldsByTheLastSuchPick) {
  PickRig rig(only("no-hit-lru-scorer"));
  rig.add_endpoints(5);
  // Cold picks of e2, e4, e1, in this order.
  for (const char* name : {"e2", "e4", "e1"}) {
    const std::string_view subset[] = {name};
    const auto keys = chain(std::hash<std::string>{}(name), 4);
    auto request = rig.request(keys);
    request.has_subset = true;
    request.subset = subset;
    ASSERT_EQ(rig.winner(request), name);
  }
  // Of five: e3 and e5 had none; then ranks 2, 3, 4 of 4.
  const auto cold = chain(99, 4);
  expect_scores(rig.scores(rig.request(cold)),
                {{"e3", 1}, {"e5", 1}, {"e2", 0.5F}, {"e4", 0.25F}, {"e1", 0}});
}

TEST(NoHitLruScorer, IsHalfForAllWhenSomebodyHoldsTheBeginning) {
  PickRig rig(only("no-hit-lru-scorer"));
  rig.add_endpoints(3);
  const auto keys = chain(1, 4);
  rig.pick(rig.request(keys));
  expect_scores(rig.scores(rig.request(keys)), {{"e1", 0.5F}, {"e2", 0.5F}, {"e3", 0.5F}});
}

TEST(NoHitLruScorer, FillsEveryEndpointInTurn) {
  PickRig rig(only("no-hit-lru-scorer"));
  rig.add_endpoints(6);
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 60; ++prompt)
    ++tally[rig.served(rig.request(chain(prompt, 3)))];
  ASSERT_EQ(tally.size(), 6U);
  for (const auto& [name, count] : tally) EXPECT_EQ(count, 10U) << name;
}

TEST(HeaderLabelAffinityScorer, PrefersTheLabelThatTheHeaderNames) {
  PickRig rig(only("header-label-affinity-scorer", "{headerName: X-Slice, labelKey: slice}"));
  rig.add(labelled(rig, "a", {{"slice", "1"}}));
  rig.add(labelled(rig, "b", {{"slice", "2"}}));
  rig.add(rig.spec("c"));
  const Attribute attributes[] = {{"other", "1"}, {"x-slice", "2"}};
  auto request = rig.request();
  request.attributes = attributes;
  expect_scores(rig.scores(request), {{"a", 0}, {"b", 1}, {"c", 0}});
  EXPECT_EQ(rig.pick(rig.request()).reason, abi::Reason::kTie) << "no header, no preference";
}

TEST(EndpointAttributeScorer, NormalisesBetweenTheCandidates) {
  PickRig rig(only("endpoint-attribute-scorer",
                   "{attributeKey: waiting-queue, algorithm: {type: linear_lower_is_better}}"));
  rig.add_endpoints(4);
  rig.record("e1").waiting.store(10);
  rig.record("e2").waiting.store(2);
  rig.record("e3").waiting.store(4);  // e4 told nothing: 0, as the Endpoint Picker has it
  expect_scores(rig.scores(rig.request()), {{"e1", 0}, {"e2", 1}, {"e3", 0.75F}, {"e4", 0}});
}

TEST(EndpointAttributeScorer, NormalisesInAFixedRangeAndReadsLabels) {
  PickRig rig(only("endpoint-attribute-scorer",
                   "{attributeKey: 'label:gpus', algorithm: {type: linear_higher_is_better, "
                   "normalization: {fixedRange: {min: 2, max: 6}}}}"));
  rig.add(labelled(rig, "one", {{"gpus", "1"}}));
  rig.add(labelled(rig, "four", {{"gpus", "4"}}));
  rig.add(labelled(rig, "eight", {{"gpus", "8"}}));
  rig.add(labelled(rig, "broken", {{"gpus", "many"}}));
  expect_scores(rig.scores(rig.request()),
                {{"one", 0}, {"four", 0.5F}, {"eight", 1}, {"broken", 0}});
}

// The token is the Base64 of the endpoint's name, or of "namespace/name".
TEST(SessionAffinity, FollowsTheEndpointThatATokenNames) {
  PickRig rig(only("session-affinity-scorer"));
  rig.add_endpoints(4);
  for (const char* token : {"ZTM=", "ZTM", "ZGVmYXVsdC9lMw=="}) {  // e3, e3, default/e3
    const Attribute attributes[] = {{"x-session-token", token}};
    auto request = rig.request();
    request.attributes = attributes;
    expect_scores(rig.scores(request), {{"e1", 0}, {"e2", 0}, {"e3", 1}, {"e4", 0}});
  }
}

TEST(SessionAffinity, PassesOverTokensThatNameNobody) {
  PickRig rig(only("session-affinity-scorer", "{algorithm: encoded_endpoint_header}"));
  rig.add_endpoints(3);
  const std::string longest(255, 'A');
  for (const std::string token : {"", "=", "A", "!!!!", "ZTk=", "bWUz", longest.c_str()}) {
    const Attribute attributes[] = {{"x-session-token", token}};
    auto request = rig.request();
    request.attributes = attributes;
    request.dry_run = true;
    EXPECT_EQ(rig.pick(request).reason, abi::Reason::kTie) << token;
  }
}

TEST(SessionAffinity, TakesTheIdFromAHeaderWhenToldSo) {
  PickRig rig(only("session-affinity-scorer",
                   "{algorithm: session_id_header, headerName: x-session-id, "
                   "evictionTtlSeconds: 10}"));
  rig.add_endpoints(8);
  const Attribute attributes[] = {{"X-Session-ID", "some id"}};
  auto request = rig.request();
  request.attributes = attributes;
  const std::string first = rig.winner(request);
  for (int turn = 0; turn < 5; ++turn) {
    auto again = rig.request();
    again.attributes = attributes;
    EXPECT_EQ(rig.winner(again), first);
  }
  rig.tick += 201;
  auto late = rig.request();
  late.attributes = attributes;
  EXPECT_EQ(rig.pick(late).reason, abi::Reason::kTie);
}

}  // namespace
}  // namespace pickd::pick::test

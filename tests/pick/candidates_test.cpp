// Who may serve a request at all: models, states, subset hints; and the statuses when nobody may.
#include <cerrno>
#include <set>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

using Names = std::set<std::string>;

Names candidates(PickRig& rig, PickRequest request) {
  request.dry_run = true;
  const auto names = rig.names(rig.pick(request));
  return {names.begin(), names.end()};
}

class Gathering : public ::testing::Test {
 protected:
  Gathering() {
    auto llama = rig.spec("llama");
    llama.models = {"llama"};
    auto qwen = rig.spec("qwen");
    qwen.models = {"qwen", "llama"};
    rig.add(llama);
    rig.add(qwen);
  }
  PickRig rig;
};

TEST_F(Gathering, TakesTheEndpointsOfTheModel) {
  auto request = rig.request();
  request.model = "qwen";
  EXPECT_EQ(candidates(rig, request), Names{"qwen"});
  request.model = "llama";
  EXPECT_EQ(candidates(rig, request), (Names{"llama", "qwen"}));
  request.model = "";
  EXPECT_EQ(candidates(rig, request), (Names{"llama", "qwen"}));
}

TEST_F(Gathering, AnswersNoSuchModel) {
  auto request = rig.request();
  request.model = "gpt";
  const PickResult result = rig.pick(request);
  EXPECT_EQ(result.status, -ENOENT);
  EXPECT_EQ(result.count, 0U);
  EXPECT_FALSE(result.reserved);
  EXPECT_EQ(rig.counted(abi::Counter::picks_unknown_model), 1U);
  EXPECT_EQ(rig.counted(abi::Counter::picks_refused), 1U);
  EXPECT_EQ(rig.counted(abi::Counter::picks), 0U);
}

TEST_F(Gathering, LetsEndpointsThatListNoModelsServeAny) {
  rig.add(rig.spec("any"));
  auto request = rig.request();
  request.model = "gpt";
  EXPECT_EQ(candidates(rig, request), Names{"any"});
}

TEST_F(Gathering, AnswersNobodyReadyForAModelWhoseEndpointsDrain) {
  rig.set_state("qwen", abi::EndpointState::kDraining);
  auto request = rig.request();
  request.model = "qwen";
  EXPECT_EQ(rig.pick(request).status, -EHOSTUNREACH) << "the model is known";
}

TEST_F(Gathering, HeedsASubsetByNameAndByAddress) {
  rig.add(rig.spec("third"));
  const std::string_view by_both[] = {"llama", "third:8000"};
  auto request = rig.request();
  request.has_subset = true;
  request.subset = by_both;
  EXPECT_EQ(candidates(rig, request), (Names{"llama", "third"}));
  const std::string_view one_unknown[] = {"gone:8000", "qwen"};
  request.subset = one_unknown;
  EXPECT_EQ(candidates(rig, request), Names{"qwen"});
}

TEST_F(Gathering, FindsNobodyInAnEmptyOrAForeignSubset) {
  auto request = rig.request();
  request.has_subset = true;
  EXPECT_EQ(rig.pick(request).status, -EHOSTUNREACH);
  const std::string_view foreign[] = {"somebody:1"};
  request.subset = foreign;
  EXPECT_EQ(rig.pick(request).status, -EHOSTUNREACH);
  EXPECT_EQ(rig.counted(abi::Counter::picks_no_endpoint), 2U);
}

TEST_F(Gathering, DoesNotLetASubsetReachAnEndpointOfAnotherModel) {
  const std::string_view subset[] = {"llama"};
  auto request = rig.request();
  request.model = "qwen";
  request.has_subset = true;
  request.subset = subset;
  EXPECT_EQ(rig.pick(request).status, -EHOSTUNREACH);
}

TEST_F(Gathering, IgnoresASubsetThatIsNotFlagged) {
  const std::string_view subset[] = {"llama"};
  auto request = rig.request();
  request.subset = subset;
  EXPECT_EQ(candidates(rig, request), (Names{"llama", "qwen"}));
}

TEST_F(Gathering, ForgetsTheSubsetOfThePickBefore) {
  const std::string_view subset[] = {"llama"};
  auto request = rig.request();
  request.has_subset = true;
  request.subset = subset;
  rig.pick(request);
  const std::string_view other[] = {"qwen"};
  request.subset = other;
  EXPECT_EQ(candidates(rig, request), Names{"qwen"});
  EXPECT_EQ(candidates(rig, rig.request()), (Names{"llama", "qwen"}));
}

TEST(GatheringOfNobody, AnswersNoReadyEndpoint) {
  PickRig rig;
  auto request = rig.request();
  request.model = "llama";
  EXPECT_EQ(rig.pick(request).status, -EHOSTUNREACH);
}

TEST_F(Gathering, TakesNoDrainingDownOrStartingEndpointWhileOneIsReady) {
  for (const auto state : {abi::EndpointState::kDraining, abi::EndpointState::kDown,
                           abi::EndpointState::kStarting, abi::EndpointState::kFree}) {
    rig.set_state("llama", state);
    EXPECT_EQ(candidates(rig, rig.request()), Names{"qwen"});
  }
  rig.set_state("llama", abi::EndpointState::kDraining);
  rig.set_state("qwen", abi::EndpointState::kDraining);
  EXPECT_EQ(rig.pick(rig.request()).status, -EHOSTUNREACH);
}

TEST_F(Gathering, NeverGivesUpTheLastOneButTakesTheLeastBad) {
  rig.set_state("llama", abi::EndpointState::kDown);
  rig.set_state("qwen", abi::EndpointState::kStarting);
  EXPECT_EQ(candidates(rig, rig.request()), Names{"qwen"});
  rig.set_state("qwen", abi::EndpointState::kDown);
  EXPECT_EQ(rig.pick(rig.request()).count, 2U);
  EXPECT_EQ(rig.pick(rig.request()).reason, abi::Reason::kFallback);
  rig.set_state("qwen", abi::EndpointState::kSuspect);
  EXPECT_EQ(candidates(rig, rig.request()), Names{"qwen"});
}

TEST_F(Gathering, TakesSuspectEndpointsOnlyWhenNobodyIsReady) {
  rig.set_state("llama", abi::EndpointState::kSuspect);
  EXPECT_EQ(candidates(rig, rig.request()), Names{"qwen"});
  rig.set_state("qwen", abi::EndpointState::kSuspect);
  const PickResult result = rig.pick(rig.request());
  EXPECT_EQ(result.count, 2U);
  EXPECT_EQ(result.reason, abi::Reason::kFallback);
  rig.set_state("qwen", abi::EndpointState::kDraining);
  EXPECT_EQ(candidates(rig, rig.request()), Names{"llama"});
}

TEST_F(Gathering, PassesOverAnEndpointThatWasReplacedThisMoment) {
  // The record's text is newer than the picture: its address may be another.
  rig.record("llama").text_version.fetch_add(2);
  EXPECT_EQ(candidates(rig, rig.request()), Names{"qwen"});
}

TEST_F(Gathering, TakesAnEndpointThatWasResetThisMomentInItsNewGeneration) {
  // A reset leaves the text: the engine is the same, and the generation of the record counts.
  const abi::LifeWord seen{rig.record("llama").life.load()};
  rig.record("llama").life.store(
      abi::LifeWord::make(seen.generation() + 1, seen.floor(), seen.horizon()).bits);
  EXPECT_EQ(candidates(rig, rig.request()), (Names{"llama", "qwen"}));
  rig.set_state("qwen", abi::EndpointState::kDraining);
  EXPECT_EQ(rig.pick(rig.request()).endpoints[0].generation, seen.generation() + 1);
}

RigOptions selector(const std::string& parameters) {
  RigOptions options;
  options.scheduling = scheduling({{"label-selector-filter", std::nullopt, parameters}});
  return options;
}

Names selected(const std::string& parameters) {
  PickRig rig(selector(parameters));
  const auto add = [&](const char* name, std::vector<std::pair<std::string, std::string>> labels) {
    auto spec = rig.spec(name);
    spec.labels = std::move(labels);
    rig.add(spec);
  };
  add("a", {{"zone", "east"}, {"gpu", "h100"}});
  add("b", {{"zone", "west"}, {"gpu", "h100"}});
  add("c", {{"zone", "east"}});
  add("d", {});
  return candidates(rig, rig.request());
}

TEST(LabelSelectorFilter, KeepsWhoHasEveryLabelOfMatchLabels) {
  EXPECT_EQ(selected("{matchLabels: {zone: east}}"), (Names{"a", "c"}));
  EXPECT_EQ(selected("{matchLabels: {zone: east, gpu: h100}}"), Names{"a"});
}

TEST(LabelSelectorFilter, KnowsTheFourOperators) {
  const auto expression = [](const std::string& body) {
    return selected("{matchExpressions: [{" + body + "}]}");
  };
  EXPECT_EQ(expression("key: zone, operator: In, values: [west, north]"), Names{"b"});
  EXPECT_EQ(expression("key: zone, operator: NotIn, values: [west]"), (Names{"a", "c", "d"}));
  EXPECT_EQ(expression("key: gpu, operator: Exists"), (Names{"a", "b"}));
  EXPECT_EQ(expression("key: gpu, operator: DoesNotExist"), (Names{"c", "d"}));
}

TEST(LabelSelectorFilter, ShedsARequestThatItLeavesNobodyFor) {
  PickRig rig(selector("{matchLabels: {zone: moon}}"));
  rig.add_endpoints(2);
  const PickResult result = rig.pick(rig.request());
  EXPECT_EQ(result.status, -EBUSY);
  EXPECT_EQ(result.count, 0U);
  EXPECT_EQ(rig.counted(abi::Counter::picks_shed), 1U);
  EXPECT_EQ(rig.counted(abi::Counter::picks_refused), 1U);
  EXPECT_EQ(rig.inflight("e1") + rig.inflight("e2"), 0U);
}

}  // namespace
}  // namespace pickd::pick::test

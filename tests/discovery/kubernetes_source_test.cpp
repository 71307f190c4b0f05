// The Kubernetes source against a stand-in that speaks the API's protocol.
#include "daemon/discovery/kubernetes/kubernetes_source.hpp"

#include <nlohmann/json.hpp>

#include "tests/discovery/api_server.hpp"
#include "tests/discovery/slices.hpp"
#include "tests/discovery/support.hpp"

namespace pickd::discovery::test {
namespace {

using kubernetes::KubernetesSource;
using nlohmann::json;
using Addresses = Heard::Addresses;

const std::string kPods = "/api/v1/namespaces/ai/pods";
const std::string kPools = "/apis/inference.networking.k8s.io/v1/namespaces/ai/inferencepools";
const std::string kOldPools =
    "/apis/inference.networking.x-k8s.io/v1alpha2/namespaces/ai/inferencepools";

json pod(const std::string& name, const std::string& address, bool ready = true, int restarts = 0) {
  return {
      {"kind", "Pod"},
      {"metadata",
       {{"name", name},
        {"uid", "u-" + name},
        {"labels", {{"app", "vllm"}, {"llm-d.ai/role", "decode"}}}}},
      {"spec",
       {{"nodeName", "node-1"},
        {"containers",
         {{{"name", "vllm"}, {"ports", json::array({{{"containerPort", 8000}}})}},
          {{"name", "proxy"}}}}}},
      {"status",
       {{"phase", "Running"},
        {"podIP", address},
        {"conditions", json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})},
        {"containerStatuses",
         {{{"name", "vllm"}, {"restartCount", restarts}},
          {{"name", "proxy"}, {"restartCount", 7}}}}}}};
}

json inference_pool(const std::string& name, const std::vector<int>& numbers) {
  json ports = json::array();
  for (const int number : numbers) ports.push_back({{"number", number}});
  return {{"apiVersion", "inference.networking.k8s.io/v1"},
          {"kind", "InferencePool"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"selector", {{"matchLabels", {{"app", "vllm"}}}}},
            {"targetPorts", ports},
            {"endpointPickerRef", {{"name", "epp"}}}}}};
}

class KubernetesSourceTest : public ::testing::Test {
 protected:
  KubernetesSourceTest() {
    config_.service = "vllm";
    config_.port = "http";
    config_.name_space = "ai";
    config_.api_server = api_.url();
    directory_.write("token", "first\n");
    config_.token_file = directory_ / "token";
    api_.serve(kSlices);
  }
  void start() {
    running_ = std::make_unique<Running>([&](net::Reactor& reactor) -> std::unique_ptr<Source> {
      auto access = kubernetes::make_access(config_, "", "", nullptr);
      if (!access) throw std::runtime_error(access.error().text);
      access->back_off_min_ms = back_off_min_ms_;
      access->back_off_max_ms = 4 * back_off_min_ms_;
      return std::make_unique<KubernetesSource>(reactor, nullptr, *access, config_, heard_.hooks());
    });
  }
  bool watching(const std::string& path, int times = 1) {
    return eventually([&] { return api_.watches(path) >= times && api_.running_watches() > 0; });
  }
  void use_pool() {
    config_.service.clear();
    config_.port.clear();
    config_.inference_pool = "llama";
    api_.serve(kPods);
  }

  ApiServer api_;
  std::uint64_t back_off_min_ms_ = 5;
  Directory directory_;
  config::KubernetesDiscoveryConfig config_;
  Heard heard_;
  std::unique_ptr<Running> running_;
};

// ---- EndpointSlices -----------------------------------------------------------------------------

TEST_F(KubernetesSourceTest, ListsTheSlicesOfAServiceAndNoOthers) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")}));
  api_.put(kSlices, slice("other-1", {endpoint("x", "10.0.9.9")}, "other"));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}, {"b", "10.0.0.2:8000"}}));
  const auto spec = heard_.set()[0];
  EXPECT_EQ(spec.draining, false);
  EXPECT_EQ(spec.incarnation, "u-a");
  EXPECT_EQ(spec.labels[0].second, "zone-a");
}

TEST_F(KubernetesSourceTest, FollowsWhatIsAddedChangedAndDeleted) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  ASSERT_TRUE(watching(kSlices));
  api_.put(kSlices, slice("vllm-2", {endpoint("b", "10.0.0.2")}));
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}, {"b", "10.0.0.2:8000"}}));
  api_.put(kSlices, slice("vllm-1", {endpoint("c", "10.0.0.3")}));
  ASSERT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}, {"c", "10.0.0.3:8000"}}));
  api_.remove(kSlices, "vllm-2");
  EXPECT_TRUE(heard_.becomes({{"c", "10.0.0.3:8000"}}));
  EXPECT_EQ(api_.lists(kSlices), 1) << "one list, the rest by the watch";
}

TEST_F(KubernetesSourceTest, DrainsWhatIsNotReadyOrTerminates) {
  json ending = endpoint("b", "10.0.0.2", false);
  ending["conditions"] = {{"ready", false}, {"serving", true}, {"terminating", true}};
  json silent = endpoint("c", "10.0.0.3");
  silent.erase("conditions");
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1", false), ending, silent}));
  start();
  ASSERT_TRUE(eventually([&] { return heard_.set().size() == 3; }));
  EXPECT_EQ(heard_.set()[0].draining, true);
  EXPECT_EQ(heard_.set()[1].draining, true);
  EXPECT_EQ(heard_.set()[2].draining, false) << "no word means ready";
  ASSERT_TRUE(watching(kSlices));
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1", true)}));
  EXPECT_TRUE(
      eventually([&] { return heard_.set().size() == 1 && heard_.set()[0].draining == false; }));
}

TEST_F(KubernetesSourceTest, ListsPageByPage) {
  Addresses wanted;
  for (int at = 0; at < 600; ++at) {
    const std::string name = "pod-" + std::to_string(at);
    const std::string address = "10.1." + std::to_string(at / 250) + "." + std::to_string(at % 250);
    api_.put(kSlices, slice("vllm-" + std::to_string(at), {endpoint(name, address)}));
    wanted[name] = address + ":8000";
  }
  start();
  EXPECT_TRUE(heard_.becomes(wanted));
  EXPECT_EQ(api_.lists(kSlices), 6);
  EXPECT_EQ(heard_.sets(), 1) << "half a list is no set";
}

TEST_F(KubernetesSourceTest, GoesOnFromTheNewestVersionAfterEveryEndOfAWatch) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(watching(kSlices));
  api_.end_watches();
  ASSERT_TRUE(watching(kSlices, 2));
  api_.put(kSlices, slice("vllm-1", {endpoint("b", "10.0.0.2")}));
  ASSERT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}}));
  api_.cut_watches();
  ASSERT_TRUE(watching(kSlices, 3));
  api_.put(kSlices, slice("vllm-1", {endpoint("c", "10.0.0.3")}));
  ASSERT_TRUE(heard_.becomes({{"c", "10.0.0.3:8000"}}));
  EXPECT_EQ(api_.lists(kSlices), 1);
}

TEST_F(KubernetesSourceTest, MissesNothingThatHappensBetweenTwoWatches) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  ASSERT_TRUE(watching(kSlices));
  api_.answer(503);
  api_.cut_watches();
  ASSERT_TRUE(heard_.says("the API server answers 503"));
  api_.put(kSlices, slice("vllm-2", {endpoint("b", "10.0.0.2")}));
  api_.remove(kSlices, "vllm-1");
  EXPECT_EQ(heard_.addresses(), (Addresses{{"a", "10.0.0.1:8000"}})) << "the set of before stays";
  api_.answer(0);
  EXPECT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}}));
  EXPECT_TRUE(eventually([&] { return heard_.trouble().empty(); }));
  EXPECT_EQ(api_.lists(kSlices), 1);
}

TEST_F(KubernetesSourceTest, ListsAnewWhenItsVersionIsTooOld) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  ASSERT_TRUE(watching(kSlices));
  api_.answer(503);
  api_.cut_watches();
  ASSERT_TRUE(heard_.says("503"));
  api_.remove(kSlices, "vllm-1");
  api_.put(kSlices, slice("vllm-2", {endpoint("b", "10.0.0.2")}));
  api_.forget_past();
  api_.answer(0);
  EXPECT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}})) << "and what is gone is gone";
  EXPECT_EQ(api_.lists(kSlices), 2);
}

TEST_F(KubernetesSourceTest, ListsAnewWhenTheWatchSaysInItsStreamThatItsVersionIsTooOld) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(watching(kSlices));
  api_.expire_watch();
  ASSERT_TRUE(watching(kSlices, 2));
  EXPECT_EQ(api_.lists(kSlices), 2);
  EXPECT_EQ(heard_.troubles(), 0) << "that is ordinary";
  api_.put(kSlices, slice("vllm-1", {endpoint("b", "10.0.0.2")}));
  EXPECT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}}));
}

TEST_F(KubernetesSourceTest, KeepsItsVersionFreshWithBookmarks) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(watching(kSlices));
  api_.forget_past();
  api_.bookmark();  // a version after what was forgotten
  api_.end_watches();
  ASSERT_TRUE(watching(kSlices, 2));
  EXPECT_EQ(api_.lists(kSlices), 1);
}

TEST_F(KubernetesSourceTest, ReadsItsTokenAgainWhenItIsRefused) {
  api_.need_token("first");
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(watching(kSlices));
  EXPECT_EQ(api_.refused(), 0);
  api_.need_token("second");
  directory_.replace("token", "second\n");
  api_.cut_watches();
  ASSERT_TRUE(watching(kSlices, 2));
  api_.put(kSlices, slice("vllm-1", {endpoint("b", "10.0.0.2")}));
  EXPECT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}}));
}

TEST_F(KubernetesSourceTest, SaysWhatItLacksWhenItMayNot) {
  api_.answer(403);
  start();
  EXPECT_TRUE(heard_.says("needs get, list and watch on " + kSlices));
  EXPECT_EQ(heard_.sets(), 0);
}

TEST_F(KubernetesSourceTest, SaysThatATokenIsRefused) {
  api_.need_token("another");
  start();
  EXPECT_TRUE(heard_.says("401"));
}

TEST_F(KubernetesSourceTest, TakesHalfAListForNone) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  api_.cut_pages(true);
  start();
  ASSERT_TRUE(eventually([&] { return api_.lists(kSlices) >= 3; })) << "it tries again";
  EXPECT_EQ(heard_.sets(), 0);
  api_.cut_pages(false);
  EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
}

TEST_F(KubernetesSourceTest, ListsAnewAfterAnEventThatIsNone) {
  start();
  int round = 0;
  for (const std::string line :
       {"not JSON", "[]", "{\"type\": \"ADDED\"}", "{\"type\": 7, \"object\": 8}"}) {
    ASSERT_TRUE(watching(kSlices, ++round));
    api_.say(line);
    EXPECT_TRUE(eventually([&] { return api_.lists(kSlices) > round; })) << line;
  }
}

TEST_F(KubernetesSourceTest, DoesNotReadAnEventWithoutEnd) {
  start();
  ASSERT_TRUE(watching(kSlices));
  api_.say(std::string(kubernetes::kLineBytesMax + 1, ' '));
  EXPECT_TRUE(heard_.says("an event of more than"));
}

// A server that never lets anything last must not be asked without a pause: so many requests take
// at least so many of the shortest pauses, less the first two, which are at once.
TEST_F(KubernetesSourceTest, PausesBetweenWatchesThatTellSomethingAndEndAtOnce) {
  back_off_min_ms_ = 100;
  constexpr int kTimes = 8;
  json old = slice("vllm-1", {endpoint("a", "10.0.0.1")});
  old["metadata"]["resourceVersion"] = "1";  // goes back, each time
  for (const auto lie : {ApiServer::Lie::kEventAndEnd, ApiServer::Lie::kEventAndExpire}) {
    api_.lie(lie, old);
    const int watches = api_.watches(kSlices);
    const auto began = std::chrono::steady_clock::now();
    start();
    ASSERT_TRUE(eventually([&] { return api_.watches(kSlices) - watches >= kTimes; }));
    EXPECT_GE(std::chrono::steady_clock::now() - began,
              std::chrono::milliseconds((kTimes - 2) * back_off_min_ms_ / 2));
    EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}})) << "what it tells counts all the same";
    running_.reset();
  }
}

TEST_F(KubernetesSourceTest, MakesFewSetsOfChangesThatDoNotEnd) {
  const auto began = std::chrono::steady_clock::now();
  constexpr int kSets = 6;
  int changes = 0;
  start();
  ASSERT_TRUE(eventually([&] {
    api_.put(kSlices, slice("vllm-1", {endpoint(++changes % 2 == 0 ? "a" : "b", "10.0.0.1")}));
    return heard_.sets() >= kSets;
  }));
  // The first two come at once; a quarter of a second before each of the others.
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(250 * (kSets - 2)));
  EXPECT_GT(changes, kSets);
}

TEST_F(KubernetesSourceTest, IsNotWellWhileEveryWatchFailsThoughEveryListIsGood) {
  api_.lie(ApiServer::Lie::kNonsense);
  start();
  ASSERT_TRUE(eventually([&] { return api_.watches(kSlices) >= 8; }));
  EXPECT_EQ(heard_.troubles(), 1) << "said once, not once a list";
  EXPECT_NE(heard_.trouble(), "");
  api_.lie(ApiServer::Lie::kNone);
  EXPECT_TRUE(eventually([&] { return heard_.trouble().empty(); })) << "once a watch has lasted";
}

TEST_F(KubernetesSourceTest, TakesAListWithoutEndForNone) {
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  ASSERT_TRUE(watching(kSlices));
  api_.lie(ApiServer::Lie::kEndlessList, slice("", {}));
  api_.expire_watch();
  EXPECT_TRUE(heard_.says("the list has more than 16384 objects"));
  EXPECT_EQ(heard_.addresses(), (Addresses{{"a", "10.0.0.1:8000"}})) << "the set of before stays";
  api_.lie(ApiServer::Lie::kNone);
  EXPECT_TRUE(eventually([&] { return heard_.trouble().empty(); }));
}

TEST_F(KubernetesSourceTest, DoesNotBuildWhatHasMillionsOfElements) {
  start();
  ASSERT_TRUE(watching(kSlices));
  std::string nothing = "{\"type\": \"ADDED\", \"object\": {\"x\": [[]";
  for (int at = 0; at < 1'500'000; ++at) nothing += ",[]";
  api_.say(nothing + "]}}");
  EXPECT_TRUE(heard_.says("an event that is none"));
}

TEST_F(KubernetesSourceTest, SaysNothingThatALogCannotHold) {
  start();
  ASSERT_TRUE(watching(kSlices));
  json error = {{"code", 500}, {"message", "a\nb\x1b[2J" + std::string(100'000, 'x')}};
  api_.say(json{{"type", "ERROR"}, {"object", error}}.dump());
  ASSERT_TRUE(heard_.says("the watch ended: "));
  EXPECT_LT(heard_.trouble().size(), 1000U);
  EXPECT_EQ(heard_.trouble().find('\x1b'), std::string::npos);
}

TEST_F(KubernetesSourceTest, SaysThatAPortIsMissing) {
  config_.port = "grpc";
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  EXPECT_TRUE(heard_.says("EndpointSlice \"vllm-1\" has no port \"grpc\""));
}

TEST_F(KubernetesSourceTest, TakesAPortByNumberOrTheFirst) {
  config_.port = "8123";
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1")}));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8123"}}));
  running_.reset();
  config_.port = "";
  start();
  EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:9090"}}));
}

TEST_F(KubernetesSourceTest, CountsAPodOnceThatSeveralSlicesHave) {
  json v6 = slice("vllm-0", {endpoint("a", "fd00::1")});
  v6["addressType"] = "IPv6";
  api_.put(kSlices, v6);
  api_.put(kSlices, slice("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2", false)}));
  api_.put(kSlices, slice("vllm-2", {endpoint("b", "10.0.0.2", true)}));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}, {"b", "10.0.0.2:8000"}}));
  EXPECT_EQ(heard_.set()[1].draining, false);
}

TEST_F(KubernetesSourceTest, AsksForFurtherLabels) {
  config_.labels = {{"tier", "gold"}};
  json gold = slice("vllm-1", {endpoint("a", "10.0.0.1")});
  gold["metadata"]["labels"]["tier"] = "gold";
  api_.put(kSlices, gold);
  api_.put(kSlices, slice("vllm-2", {endpoint("b", "10.0.0.2")}));
  start();
  EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
}

// ---- InferencePools -----------------------------------------------------------------------------

TEST_F(KubernetesSourceTest, TakesThePodsThatAnInferencePoolSelects) {
  use_pool();
  api_.put(kPools, inference_pool("llama", {8000}));
  api_.put(kPools, inference_pool("other", {1}));
  api_.put(kPods, pod("a", "10.0.0.1"));
  json stranger = pod("x", "10.0.9.9");
  stranger["metadata"]["labels"] = {{"app", "something"}};
  api_.put(kPods, stranger);
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  EXPECT_EQ(heard_.set()[0].role, abi::Role::kDecode);
  EXPECT_EQ(heard_.set()[0].draining, false);
}

TEST_F(KubernetesSourceTest, ReadsTheOlderInferencePool) {
  use_pool();
  json old = inference_pool("llama", {});
  old["spec"] = {{"selector", {{"app", "vllm"}}}, {"targetPortNumber", 8000}};
  api_.put(kOldPools, old);
  api_.put(kPods, pod("a", "10.0.0.1"));
  start();
  EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  EXPECT_EQ(heard_.trouble(), "");
}

TEST_F(KubernetesSourceTest, SaysWhenTheClusterKnowsNoInferencePools) {
  use_pool();
  start();
  EXPECT_TRUE(heard_.says("are the CRDs installed?"));
  EXPECT_EQ(heard_.sets(), 0);
}

TEST_F(KubernetesSourceTest, MakesAnEndpointOfEachTargetPortAndLeavesOneWhenTheyShrink) {
  // Field case 29.
  use_pool();
  api_.put(kPools, inference_pool("llama", {8000, 8001, 8002}));
  api_.put(kPods, pod("a", "10.0.0.1"));
  start();
  ASSERT_TRUE(heard_.becomes(
      {{"a", "10.0.0.1:8000"}, {"a-rank-1", "10.0.0.1:8001"}, {"a-rank-2", "10.0.0.1:8002"}}));
  ASSERT_TRUE(watching(kPools));
  api_.put(kPools, inference_pool("llama", {8000}));
  EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  EXPECT_EQ(api_.lists(kPods), 1) << "the same pods";
}

TEST_F(KubernetesSourceTest, DrainsPodsThatAreNotReadyOrBeingDeleted) {
  use_pool();
  api_.put(kPools, inference_pool("llama", {8000}));
  json ending = pod("b", "10.0.0.2");
  ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  json done = pod("c", "10.0.0.3");
  done["status"]["phase"] = "Succeeded";
  json pending = pod("d", "");
  api_.put(kPods, pod("a", "10.0.0.1", false));
  for (const json& one : {ending, done, pending}) api_.put(kPods, one);
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}, {"b", "10.0.0.2:8000"}}));
  EXPECT_EQ(heard_.set()[0].draining, true);
  EXPECT_EQ(heard_.set()[1].draining, true);
}

TEST_F(KubernetesSourceTest, TellsARestartOfTheEngineFromOneOfItsNeighbour) {
  use_pool();
  api_.put(kPools, inference_pool("llama", {8000}));
  api_.put(kPods, pod("a", "10.0.0.1"));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  EXPECT_EQ(heard_.set()[0].incarnation, "u-a/0") << "the proxy's seven restarts do not count";
  ASSERT_TRUE(watching(kPods));
  api_.put(kPods, pod("a", "10.0.0.1", true, 1));
  EXPECT_TRUE(eventually([&] { return heard_.set()[0].incarnation == "u-a/1"; }));
}

TEST_F(KubernetesSourceTest, SelectsAnewWhenTheSelectorChanges) {
  use_pool();
  api_.put(kPools, inference_pool("llama", {8000}));
  api_.put(kPods, pod("a", "10.0.0.1"));
  json other = pod("b", "10.0.0.2");
  other["metadata"]["labels"] = {{"app", "sglang"}};
  api_.put(kPods, other);
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  ASSERT_TRUE(watching(kPools));
  json changed = inference_pool("llama", {8000});
  changed["spec"]["selector"]["matchLabels"] = {{"app", "sglang"}};
  api_.put(kPools, changed);
  EXPECT_TRUE(heard_.becomes({{"b", "10.0.0.2:8000"}}));
}

TEST_F(KubernetesSourceTest, HasNoEndpointsOnceItsInferencePoolIsGone) {
  use_pool();
  api_.put(kPools, inference_pool("llama", {8000}));
  api_.put(kPods, pod("a", "10.0.0.1"));
  start();
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  ASSERT_TRUE(watching(kPools));
  api_.remove(kPools, "llama");
  EXPECT_TRUE(heard_.becomes({}));
  EXPECT_TRUE(heard_.says("there is no InferencePool \"llama\" in namespace \"ai\""));
}

}  // namespace
}  // namespace pickd::discovery::test

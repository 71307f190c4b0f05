// Discovery through a cluster's API in the real daemon: over TLS with the authority's file and a
// token, endpoints come, drain and go, and the daemon goes on after everything that ends a watch.
#include <fstream>
#include <map>
#include <set>

#include "tests/discovery/api_server.hpp"
#include "tests/discovery/slices.hpp"
#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

using discovery::test::ApiServer;
using discovery::test::endpoint;
using discovery::test::kSlices;
using discovery::test::slice;
using net::http::test::Certificates;

constexpr std::uint8_t kReady = 1;
constexpr std::uint8_t kDraining = 4;
using States = std::map<std::string, std::uint8_t>;
using Json = std::vector<nlohmann::json>;

class SystemKubernetes : public ::testing::Test {
 protected:
  SystemKubernetes() {
    auto made = tools::TempDir::make("pickd-kubernetes");
    if (!made) throw std::runtime_error(made.error().text);
    directory_ = std::make_unique<tools::TempDir>(std::move(*made));
    std::ofstream(token_file()) << "a-token\n";
    api_.need_token("a-token");
    api_.serve(kSlices);
  }
  std::string token_file() const { return directory_->path() + "/token"; }
  // The engines are nowhere, so nothing is scraped: what is ready is what the cluster says.
  void start(const std::string& ca_file) {
    daemon_ = std::make_unique<Daemon>(Settings{
        .rest = "scrape: {enabled: false}\npools:\n  - name: found\n    discovery:\n"
                "      kubernetes: {service: vllm, port: http, namespace: ai, "
                "api_server: \"" +
                api_.url() + "\", ca_file: " + ca_file + ", token_file: " + token_file() + "}\n",
        .endpoints = 0});
  }
  void start() { start(certificates_.ca_file()); }
  void put(const std::string& name, const Json& endpoints) {
    api_.put(kSlices, slice(name, endpoints));
  }
  States states() {
    States out;
    for (const auto& [name, view] : daemon_->endpoints()) out[name] = view.state;
    return out;
  }
  bool becomes(const States& wanted) {
    return eventually([&] { return states() == wanted; });
  }
  // So many watches began, and the last of them runs.
  bool watching(int times) {
    return eventually([&] { return api_.watches(kSlices) >= times && api_.running_watches() > 0; });
  }
  // The endpoints of many picks, none of which fails; of new prompts, which nobody has.
  std::set<std::string> picked() {
    const Client client(*daemon_);
    const Result result;
    std::set<std::string> names;
    for (int count = 0; count < 64; ++count) {
      EXPECT_EQ(pick(client, Request(prompt_of(400, seed_++)), result), 0);
      names.insert(result.name());
      client.report(result.ticket(), PICKD_REPORT_DONE);
    }
    return names;
  }
  using Names = std::set<std::string>;

  Certificates certificates_{"IP:127.0.0.1"};
  ApiServer api_{&certificates_};
  std::unique_ptr<tools::TempDir> directory_;
  std::unique_ptr<Daemon> daemon_;
  unsigned seed_ = 0;
};

TEST_F(SystemKubernetes, PicksFollowTheReadinessOfPods) {
  put("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")});
  start();
  ASSERT_TRUE(becomes({{"a", kReady}, {"b", kReady}}));
  EXPECT_EQ(daemon_->endpoints().at("a").address, "10.0.0.1:8000");
  EXPECT_EQ(picked(), (Names{"a", "b"}));
  ASSERT_TRUE(watching(1));
  const std::uint32_t generation = daemon_->endpoints().at("b").generation;

  put("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2", false)});
  ASSERT_TRUE(becomes({{"a", kReady}, {"b", kDraining}}));
  EXPECT_EQ(picked(), Names{"a"});

  put("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")});
  ASSERT_TRUE(becomes({{"a", kReady}, {"b", kReady}}));
  EXPECT_EQ(picked(), (Names{"a", "b"}));
  EXPECT_EQ(daemon_->endpoints().at("b").generation, generation) << "the same life: prefixes stay";

  put("vllm-1", {endpoint("b", "10.0.0.2")});
  ASSERT_TRUE(becomes({{"b", kReady}}));
  EXPECT_EQ(picked(), Names{"b"});

  put("vllm-2", {endpoint("c", "10.0.0.3")});
  ASSERT_TRUE(becomes({{"b", kReady}, {"c", kReady}}));
  EXPECT_EQ(picked(), (Names{"b", "c"}));
  EXPECT_EQ(api_.lists(kSlices), 1) << "all of it was one list and one watch";
  EXPECT_EQ(daemon_->counter("discovery_troubles"), 0U);
}

TEST_F(SystemKubernetes, ListsAnewWhenItsVersionIsTooOldAndMissesNothing) {
  put("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")});
  start();
  ASSERT_TRUE(becomes({{"a", kReady}, {"b", kReady}}));
  ASSERT_TRUE(watching(1));
  const auto before = daemon_->endpoints().at("a");
  api_.forget_past();
  api_.expire_watch();
  ASSERT_TRUE(eventually([&] { return api_.lists(kSlices) >= 2; }));
  ASSERT_TRUE(watching(2));
  EXPECT_EQ(states(), (States{{"a", kReady}, {"b", kReady}}));
  EXPECT_EQ(daemon_->endpoints().at("a"), before) << "listed once more is not another life";
  put("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("c", "10.0.0.3")});
  ASSERT_TRUE(becomes({{"a", kReady}, {"c", kReady}}));
  EXPECT_EQ(picked(), (Names{"a", "c"}));
}

TEST_F(SystemKubernetes, KeepsItsEndpointsWhileTheServerIsAwayAndGoesOnAfterwards) {
  put("vllm-1", {endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")});
  start();
  ASSERT_TRUE(becomes({{"a", kReady}, {"b", kReady}}));
  ASSERT_TRUE(watching(1));
  api_.answer(503);
  api_.cut_watches();
  ASSERT_TRUE(eventually([&] { return daemon_->counter("discovery_troubles") >= 1; }));
  put("vllm-1", {endpoint("b", "10.0.0.2"), endpoint("c", "10.0.0.3")});
  EXPECT_EQ(states(), (States{{"a", kReady}, {"b", kReady}}));
  EXPECT_EQ(picked(), (Names{"a", "b"}));
  api_.answer(0);
  ASSERT_TRUE(becomes({{"b", kReady}, {"c", kReady}}));
  EXPECT_EQ(picked(), (Names{"b", "c"}));
  EXPECT_EQ(api_.lists(kSlices), 1) << "it went on from the version that it knew";
}

TEST_F(SystemKubernetes, ReadsItsTokenAgainWhenItIsReplaced) {
  put("vllm-1", {endpoint("a", "10.0.0.1")});
  start();
  ASSERT_TRUE(becomes({{"a", kReady}}));
  ASSERT_TRUE(watching(1));
  std::ofstream(token_file()) << "another\n";
  api_.need_token("another");
  api_.cut_watches();
  ASSERT_TRUE(watching(2));
  put("vllm-1", {endpoint("b", "10.0.0.2")});
  EXPECT_TRUE(becomes({{"b", kReady}}));
}

TEST_F(SystemKubernetes, SendsNothingToAServerOfAnotherAuthority) {
  put("vllm-1", {endpoint("a", "10.0.0.1")});
  const Certificates stranger("IP:127.0.0.1");
  start(stranger.ca_file());
  ASSERT_TRUE(eventually([&] { return daemon_->counter("discovery_troubles") >= 1; }));
  EXPECT_NE(daemon_->log().find("certificate"), std::string::npos);
  EXPECT_EQ(api_.targets(), std::vector<std::string>{}) << "and so no token either";
  EXPECT_EQ(states(), States{});
}

}  // namespace
}  // namespace pickd::systests

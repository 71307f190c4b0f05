// How the API server is reached, and objects of any shape.
#include <nlohmann/json.hpp>

#include "daemon/discovery/kubernetes/kubernetes_source.hpp"
#include "tests/discovery/support.hpp"

namespace pickd::discovery::test {
namespace {

using nlohmann::json;

// ---- Access -------------------------------------------------------------------------------------

TEST(KubernetesAccess, IsWhatKubernetesTellsEveryPod) {
  Directory directory;
  directory.write("namespace", "ai\n");
  config::KubernetesDiscoveryConfig config;
  config.namespace_file = directory / "namespace";
  const auto access = kubernetes::make_access(config, "fd00::1", "6443", nullptr);
  ASSERT_TRUE(access.ok()) << access.error().text;
  EXPECT_EQ(access.value().server.host, "fd00::1");
  EXPECT_EQ(access.value().server.port, 6443);
  EXPECT_TRUE(access.value().server.tls);
  EXPECT_EQ(access.value().name_space, "ai");
}

TEST(KubernetesAccess, SaysWhatToSayOutsideOfAPod) {
  config::KubernetesDiscoveryConfig config;
  config.name_space = "ai";
  EXPECT_NE(kubernetes::make_access(config, "", "", nullptr).error().text.find("say api_server:"),
            std::string::npos);
  config.name_space = "";
  config.namespace_file = "/nowhere";
  config.api_server = "https://10.0.0.1";
  EXPECT_NE(kubernetes::make_access(config, "", "", nullptr).error().text.find("say namespace:"),
            std::string::npos);
}

TEST(KubernetesAccess, SendsNoTokenOverPlainHttpToAnotherMachine) {
  config::KubernetesDiscoveryConfig config;
  config.name_space = "ai";
  config.token_file = "/some/token";
  config.api_server = "http://10.0.0.1:8001";
  EXPECT_EQ(kubernetes::make_access(config, "", "", nullptr).value().client.token, nullptr);
}

// ---- Objects of any shape -----------------------------------------------------------------------

TEST(KubernetesObjects, AreReadWhateverTheirShape) {
  const json odd[] = {
      nullptr,
      7,
      "text",
      json::array(),
      {{"metadata", 7}, {"spec", "x"}, {"status", nullptr}},
      {{"metadata", {{"name", 7}}}, {"ports", "x"}, {"endpoints", 7}},
      {{"ports", {{{"port", -1}}}}, {"endpoints", {1, nullptr, {{"addresses", 7}}}}},
      {{"ports", {{{"port", 99999}}}}, {"endpoints", {{{"addresses", {7}}}}}},
      {{"spec", {{"selector", 7}, {"targetPorts", {7, {{"number", "x"}}}}}}},
      {{"metadata", json::object()},
       {"spec", {{"containers", {7, {{"ports", "x"}}}}}},
       {"status", {{"conditions", {7}}, {"podIP", 7}, {"containerStatuses", 7}}}}};
  for (const json& object : odd) {
    EXPECT_TRUE(kubernetes::read_slice(object, "").endpoints.empty()) << object;
    EXPECT_TRUE(kubernetes::read_inference_pool(object).ports.empty()) << object;
    EXPECT_TRUE(kubernetes::endpoints_of(kubernetes::read_pod(object), {8000}).empty()) << object;
  }
}

}  // namespace
}  // namespace pickd::discovery::test

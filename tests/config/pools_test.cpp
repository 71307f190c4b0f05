// Ranks and discovery of pools, and endpoint files.
#include "daemon/config/endpoint_file.hpp"
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigPools : public ConfigFiles {
 protected:
  std::string bad_pool(const std::string& line) const {
    return bad("pools:\n  - name: p\n    " + line + "\n");
  }
};

TEST_F(ConfigPools, ReadEverySourceWithItsDefaults) {
  const Config config = good(R"(
pools:
  - {name: plain}
  - name: f
    models: [m]
    discovery: {file: endpoints.d, role: decode, labels: {zone: a}, capacity_tokens: 64000}
  - name: d
    discovery: {dns: {name: vllm.ai.svc, port: 8000}}
  - name: s
    discovery:
      dns: {name: _http._tcp.vllm, type: srv, servers: ["10.0.0.10:53"], ttl_min: 5s, ttl_max: 1min}
  - name: k
    discovery: {kubernetes: {service: vllm, port: http, labels: {tier: gold}}}
  - name: i
    discovery: {kubernetes: {inference_pool: llama, namespace: ai, api_server: "https://10.0.0.1"}}
)");
  ASSERT_EQ(config.pools.size(), 5U) << "of `plain` there is no more to say";
  EXPECT_EQ(config.pools[0].discovery->file->path, directory_ + "/endpoints.d");
  EXPECT_EQ(config.pools[0].discovery->role, Role::kDecode);
  EXPECT_EQ(config.pools[0].discovery->capacity_tokens, 64'000U);
  EXPECT_EQ(config.pools[0].models, std::vector<std::string>{"m"});
  EXPECT_EQ(config.pools[1].discovery->dns->type, DnsDiscoveryConfig::Type::kA);
  EXPECT_EQ(config.pools[1].discovery->dns->ttl_min_ms, 1000U);
  EXPECT_EQ(config.pools[1].discovery->dns->ttl_max_ms, 30'000U);
  EXPECT_EQ(config.pools[2].discovery->dns->type, DnsDiscoveryConfig::Type::kSrv);
  EXPECT_EQ(config.pools[2].discovery->dns->ttl_min_ms, 5000U);
  EXPECT_EQ(config.pools[3].discovery->kubernetes->service, "vllm");
  EXPECT_EQ(config.pools[3].discovery->kubernetes->ca_file,
            "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
  EXPECT_EQ(config.pools[4].discovery->kubernetes->name_space, "ai");
}

TEST_F(ConfigPools, ReadRanksInEachOfTheirForms) {
  const Config config = good(R"(
pools:
  - {name: a, ranks: {ports: [8000, 8001]}}
  - {name: b, ranks: {count: 4}}
  - {name: c, ranks: {count: 2, behind: consecutive-ports, as: one}}
)");
  EXPECT_EQ(config.pools[0].ranks->count, 2U);
  EXPECT_EQ(config.pools[0].ranks->ports, (std::vector<std::uint32_t>{8000, 8001}));
  EXPECT_EQ(config.pools[1].ranks->behind, RanksConfig::Behind::kOnePort);
  EXPECT_EQ(config.pools[2].ranks->behind, RanksConfig::Behind::kConsecutivePorts);
  EXPECT_EQ(config.pools[2].ranks->as, RanksConfig::As::kOne);
}

TEST_F(ConfigPools, SayWhatWouldBeRightForADiscovery) {
  EXPECT_EQ(bad_pool("discovery: {}"),
            "pickd.yaml:3: pools[0].discovery: needs one source: file, dns or kubernetes");
  EXPECT_EQ(bad_pool("discovery:"),
            "pickd.yaml:3: pools[0].discovery: needs one source: file, dns or kubernetes");
  EXPECT_EQ(bad_pool("discovery: {file: x, dns: {name: n, port: 1}}"),
            "pickd.yaml:3: pools[0].discovery: has several sources; a pool has one of file, dns, "
            "kubernetes");
  EXPECT_EQ(bad_pool("discovery: {dsn: {name: n, port: 1}, file: x}"),
            "pickd.yaml:3: pools[0].discovery.dsn: unknown key (did you mean `dns`?)");
  EXPECT_EQ(
      bad_pool("discovery: {dns: {name: n}}"),
      "pickd.yaml:3: pools[0].discovery.dns.port: is missing; type a finds addresses only, so "
      "say which port the engines listen on, such as 8000");
  EXPECT_EQ(bad_pool("discovery: {dns: {name: n, type: srv, port: 1}}"),
            "pickd.yaml:3: pools[0].discovery.dns.port: SRV records bring their ports; remove it, "
            "or set type to a");
  EXPECT_EQ(bad_pool("discovery: {dns: {name: n, port: 1, ttl_min: 1min, ttl_max: 1s}}"),
            "pickd.yaml:3: pools[0].discovery.dns.ttl_max: must not be less than ttl_min");
  EXPECT_NE(bad_pool("discovery: {dns: {name: n, port: 70000}}").find("65535"), std::string::npos);
  EXPECT_EQ(bad_pool("discovery: {kubernetes: {}}"),
            "pickd.yaml:3: pools[0].discovery.kubernetes: needs either service, whose "
            "EndpointSlices are watched, or inference_pool, whose pods are");
  EXPECT_EQ(bad_pool("discovery: {kubernetes: {inference_pool: a, port: http}}"),
            "pickd.yaml:3: pools[0].discovery.kubernetes.port: an InferencePool says its target "
            "ports itself; remove it");
  EXPECT_EQ(bad_pool("discovery: {kubernetes: {service: a, api_server: 10.0.0.1}}"),
            "pickd.yaml:3: pools[0].discovery.kubernetes.api_server: must be a URL, such as "
            "https://10.96.0.1:443; is `10.0.0.1`");
}

TEST_F(ConfigPools, SayWhatWouldBeRightForRanks) {
  EXPECT_EQ(bad_pool("ranks: {}"),
            "pickd.yaml:3: pools[0].ranks: needs ports, such as [8000, 8001], or count, such as 4");
  EXPECT_EQ(bad_pool("ranks: {ports: [8000], count: 2}"),
            "pickd.yaml:3: pools[0].ranks.ports: says how many ranks there are and where; remove "
            "count and behind");
  EXPECT_EQ(bad_pool("ranks: {ports: [8000, 8000]}"),
            "pickd.yaml:3: pools[0].ranks.ports: names port 8000 twice; each rank has its own");
  EXPECT_NE(bad_pool("ranks: {ports: [0]}").find("must be numbers from 1 to 65535"),
            std::string::npos);
  EXPECT_NE(bad_pool("ranks: {count: 1000}").find("256"), std::string::npos);
  EXPECT_NE(bad_pool("ranks: {count: 2, as: several}").find("endpoints, one"), std::string::npos);
}

TEST_F(ConfigPools, ArePrintedSoThatTheyReadBackTheSame) {
  const std::string yaml = R"(
pools:
  - name: f
    models: [m]
    endpoints: [{name: a, address: "h:1"}]
    ranks: {ports: [8000, 8001]}
    discovery: {file: endpoints.d, role: decode, labels: {zone: a}, capacity_tokens: 64000}
  - name: d
    ranks: {count: 4, as: one}
    discovery: {dns: {name: n, type: both, port: 8000, timeout: 900ms}}
  - name: k
    discovery: {kubernetes: {service: vllm, port: http, labels: {tier: gold}, token_file: ""}}
)";
  const auto first = load(yaml);
  ASSERT_TRUE(first.ok()) << first.error().text;
  const auto second = load(print_config(first.value()));
  ASSERT_TRUE(second.ok()) << second.error().text;
  EXPECT_EQ(first.value().config, second.value().config) << print_config(first.value());
}

TEST_F(ConfigPools, HaveEndpointFilesAsStrictAsTheConfiguration) {
  const auto read = [this](const std::string& text) {
    const auto endpoints = read_endpoint_file(write("e.yaml", text), "p");
    return endpoints ? std::to_string(endpoints.value().size())
                     : without_directory(endpoints.error().text);
  };
  EXPECT_EQ(read("endpoints: []\n"), "0");
  EXPECT_EQ(read("[]\n"), "0");
  EXPECT_EQ(read("- {name: a, address: \"h:1\"}\n"), "1");
  EXPECT_EQ(read("{\"endpoints\": [{\"name\": \"a\", \"address\": \"h:1\"}]}"), "1");
  EXPECT_EQ(read(""),
            "e.yaml:1: endpoints: must be a list (`- name: ...`); write `endpoints: []` "
            "when there are none");
  EXPECT_EQ(read("endpoints: []\npools: []\n"), "e.yaml:2: pools: unknown key; known: endpoints");
  EXPECT_EQ(read("- {name: a}\n- {name: b, address: h}\n"),
            "e.yaml:1: endpoints[0].address: is missing; every entry needs it\n"
            "e.yaml:2: endpoints[1].address: needs a port or a scheme, such as 10.0.0.1:8000; is "
            "`h`");
}

}  // namespace
}  // namespace pickd::config

// Endpoints and pools of the file.
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigEndpoints : public ConfigFiles {};

TEST_F(ConfigEndpoints, AreReadWithEverythingThatCanBeSaid) {
  const Config config = good(R"(
endpoints:
  - name: a
    address: 10.0.0.1:8000
  - name: b
    address: "http://b.example:8000/v1"
    pool: long
    role: prefill
    models: [m1, m2]
    labels: {zone: z1, gpu: "8"}
    capacity_tokens: 700000
    metrics_url: http://10.0.0.2:9000/metrics
    engine: sglang
    rank: 3
  - {name: c, address: "[fd00::1]:80"}
)");
  ASSERT_EQ(config.endpoints.size(), 3U);
  EXPECT_EQ(config.endpoints[0].name, "a");
  EXPECT_EQ(config.endpoints[0].address, "10.0.0.1:8000");
  EXPECT_EQ(config.endpoints[0].pool, "default");
  EXPECT_EQ(config.endpoints[0].role, Role::kBoth);
  EXPECT_TRUE(config.endpoints[0].models.empty());
  EXPECT_EQ(config.endpoints[0].capacity_tokens, 0U);
  EXPECT_EQ(without_directory(config.endpoints[0].place.text()), "pickd.yaml:3");
  EXPECT_EQ(config.endpoints[1].pool, "long");
  EXPECT_EQ(config.endpoints[1].role, Role::kPrefill);
  EXPECT_EQ(config.endpoints[1].models, (std::vector<std::string>{"m1", "m2"}));
  EXPECT_EQ(config.endpoints[1].labels[1], (std::pair<std::string, std::string>("gpu", "8")));
  EXPECT_EQ(config.endpoints[1].capacity_tokens, 700'000U);
  EXPECT_EQ(config.endpoints[0].metrics_url, "");
  EXPECT_EQ(config.endpoints[0].rank, std::nullopt);
  EXPECT_EQ(config.endpoints[1].metrics_url, "http://10.0.0.2:9000/metrics");
  EXPECT_EQ(config.endpoints[1].engine, "sglang");
  EXPECT_EQ(config.endpoints[1].rank, 3U);
}

TEST_F(ConfigEndpoints, InheritPoolAndModelsFromTheirPool) {
  const Config config = good(R"(
pools:
  - name: chat
    models: [m]
    endpoints:
      - {name: a, address: "h:1"}
      - {name: b, address: "h:2", models: [n]}
  - name: empty
endpoints:
  - {name: c, address: "h:3"}
)");
  ASSERT_EQ(config.endpoints.size(), 3U);
  EXPECT_EQ(config.endpoints[0].pool, "chat");
  EXPECT_EQ(config.endpoints[0].models, std::vector<std::string>{"m"});
  EXPECT_EQ(config.endpoints[1].models, std::vector<std::string>{"n"});
  EXPECT_EQ(config.endpoints[2].pool, "default");
}

TEST_F(ConfigEndpoints, RefuseADuplicateNameWithBothLines) {
  EXPECT_EQ(bad("endpoints:\n  - {name: a, address: \"h:1\"}\n  - {name: a, address: \"h:2\"}\n"),
            "pickd.yaml:3: endpoints: the name `a` is taken by the endpoint at pickd.yaml:2");
  EXPECT_EQ(bad("pools:\n  - name: p\n    endpoints: [{name: a, address: \"h:1\"}]\n"
                "endpoints:\n  - {name: a, address: \"h:2\"}\n"),
            "pickd.yaml:5: endpoints: the name `a` is taken by the endpoint at pickd.yaml:3");
  EXPECT_EQ(bad("pools:\n  - name: p\n  - name: p\n"),
            "pickd.yaml:3: pools[1].name: the pool `p` is there already, at pickd.yaml:2");
}

TEST_F(ConfigEndpoints, RefuseWhatIsMissingUnknownOrWrong) {
  EXPECT_EQ(bad("endpoints:\n  - address: \"h:1\"\n"),
            "pickd.yaml:2: endpoints[0].name: is missing; every entry needs it");
  EXPECT_EQ(bad("endpoints:\n  - name: a\n"),
            "pickd.yaml:2: endpoints[0].address: is missing; every entry needs it");
  EXPECT_EQ(bad("endpoints:\n  - {name: a, adress: \"h:1\", address: \"h:1\"}\n"),
            "pickd.yaml:2: endpoints[0].adress: unknown key (did you mean `address`?)");
  EXPECT_EQ(bad("endpoints:\n  - {name: a, address: \"h:1\", role: both sides}\n"),
            "pickd.yaml:2: endpoints[0].role: must be one of both, decode, prefill, encode, is "
            "`both sides`");
  EXPECT_EQ(bad("endpoints:\n  - {name: \"\", address: \"h:1\"}\n"),
            "pickd.yaml:2: endpoints[0].name: must have 1 to 127 bytes, has 0");
  EXPECT_EQ(bad("endpoints:\n  - {name: " + std::string(128, 'n') + ", address: \"h:1\"}\n"),
            "pickd.yaml:2: endpoints[0].name: must have 1 to 127 bytes, has 128");
  EXPECT_EQ(bad("endpoints:\n  - {name: a, address: \"h:1\", models: m}\n"),
            "pickd.yaml:2: endpoints[0].models: must be a list, is `m`");
  EXPECT_EQ(bad("endpoints:\n  - {name: a, address: \"h:1\", labels: [m]}\n"),
            "pickd.yaml:2: endpoints[0].labels: must be a map (`key: value`), is a list");
  EXPECT_EQ(bad("endpoints:\n  - {name: a, address: \"h:1\", capacity_tokens: 5}\n"),
            "pickd.yaml:2: endpoints[0].capacity_tokens: must be a whole number from 1024 to "
            "1000000000, is `5`");
  EXPECT_EQ(bad("endpoints: a\n"), "pickd.yaml:1: endpoints: must be a list (`- name: ...`)");
  EXPECT_EQ(bad("endpoints: [a]\n"),
            "pickd.yaml:1: endpoints[0]: must be a map (`key: value`), is `a`");
  EXPECT_EQ(bad("pools:\n  - name: p\n    endpoints: [{name: a, address: \"h:1\", pool: q}]\n"),
            "pickd.yaml:3: pools[0].endpoints[0].pool: the pool is `p`, by its place; remove it");
}

TEST_F(ConfigEndpoints, RefuseAddressesWithoutPortOrScheme) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"h", "needs a port or a scheme, such as 10.0.0.1:8000; is `h`"},
      {":80", "needs a port or a scheme, such as 10.0.0.1:8000; is `:80`"},
      {"h:0", "must end with a port from 1 to 65535; is `h:0`"},
      {"h:65536", "must end with a port from 1 to 65535; is `h:65536`"},
      {"h:x", "must end with a port from 1 to 65535; is `h:x`"},
      {"h:", "must end with a port from 1 to 65535; is `h:`"},
      {"fd00::1",
       "has several colons; write an IPv6 address in brackets, such as [fd00::1]:8000; is "
       "`fd00::1`"},
      {"://h", "must have a scheme and a host, such as http://10.0.0.1:8000; is `://h`"},
      {"http://", "must have a scheme and a host, such as http://10.0.0.1:8000; is `http://`"},
      {"h 1:80", "must not hold spaces; is `h 1:80`"},
  };
  for (const auto& [address, error] : mistakes) {
    EXPECT_EQ(bad("endpoints:\n  - {name: a, address: \"" + address + "\"}\n"),
              "pickd.yaml:2: endpoints[0].address: " + error);
  }
}

TEST_F(ConfigEndpoints, RefuseMoreThanTheStateHolds) {
  EXPECT_EQ(bad("state: {endpoints_max: 1}\nendpoints:\n  - {name: a, address: \"h:1\"}\n"
                "  - {name: b, address: \"h:2\"}\n"),
            "pickd.yaml:4: endpoints: there are 2; state.endpoints_max allows 1");
}

}  // namespace
}  // namespace pickd::config

// Ranks as endpoints or as one, behind one port or several.
#include "daemon/discovery/ranks.hpp"

#include <gtest/gtest.h>

namespace pickd::discovery {
namespace {

using config::RanksConfig;

endpoints::EndpointSpec pod(const std::string& address) {
  endpoints::EndpointSpec spec;
  spec.name = "pod";
  spec.address = address;
  return spec;
}

RanksConfig listed(std::vector<std::uint32_t> ports) {
  RanksConfig ranks;
  ranks.count = ports.size();
  ranks.behind = RanksConfig::Behind::kListedPorts;
  ranks.ports = std::move(ports);
  return ranks;
}

TEST(Ranks, WithPortsOfTheirOwnBecomeEndpointsOfTheirOwn) {
  const auto specs = expand_ranks({pod("10.0.0.1:9")}, listed({8000, 8001, 8002}));
  ASSERT_EQ(specs.size(), 3U);
  EXPECT_EQ(specs[0].name, "pod");
  EXPECT_EQ(specs[0].address, "10.0.0.1:8000");
  EXPECT_EQ(specs[2].name, "pod-rank-2");
  EXPECT_EQ(specs[2].address, "10.0.0.1:8002");
  EXPECT_EQ(specs[2].rank, abi::kUnknown32) << "its metrics page is its own";
}

TEST(Ranks, LeaveOneEndpointOfTheSameNameWhenThePortsShrinkToOne) {
  // Field case 29.
  const auto specs = expand_ranks({pod("10.0.0.1:9")}, listed({8000}));
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_EQ(specs[0].name, "pod");
  EXPECT_EQ(specs[0].address, "10.0.0.1:8000");
}

TEST(Ranks, BehindOnePortShareTheAddressAndSayWhichTheyAre) {
  RanksConfig ranks;
  ranks.count = 4;
  const auto specs = expand_ranks({pod("10.0.0.1:8000")}, ranks);
  ASSERT_EQ(specs.size(), 4U);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(specs[rank].address, "10.0.0.1:8000");
    EXPECT_EQ(specs[rank].rank, rank);
  }
}

TEST(Ranks, CountPortsUpFromTheEndpointsOwn) {
  RanksConfig ranks;
  ranks.count = 2;
  ranks.behind = RanksConfig::Behind::kConsecutivePorts;
  EXPECT_EQ(expand_ranks({pod("[fd00::1]:8000")}, ranks)[1].address, "[fd00::1]:8001");
}

TEST(Ranks, AsOneAreOneEndpointAtTheFirstPortThatKnowsTheOthers) {
  RanksConfig ranks = listed({8000, 8001, 9000});
  ranks.as = RanksConfig::As::kOne;
  const auto specs = expand_ranks({pod("10.0.0.1:9")}, ranks);
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_EQ(specs[0].address, "10.0.0.1:8000");
  EXPECT_EQ(specs[0].rank, abi::kUnknown32);
  EXPECT_EQ(specs[0].more_ports, (std::vector<std::uint16_t>{8001, 9000}));
}

TEST(Ranks, AsOneBehindOnePortHaveOnePage) {
  RanksConfig ranks;
  ranks.count = 8;
  ranks.as = RanksConfig::As::kOne;
  EXPECT_TRUE(expand_ranks({pod("10.0.0.1:9")}, ranks)[0].more_ports.empty());
}

TEST(Ranks, AsOneWithAPageElsewhereHaveThatPageAlone) {
  RanksConfig ranks = listed({8000, 8001});
  ranks.as = RanksConfig::As::kOne;
  auto spec = pod("10.0.0.1:8000");
  spec.metrics_url = "http://10.0.0.1:9090/all";
  EXPECT_TRUE(expand_ranks({spec}, ranks)[0].more_ports.empty());
  spec.metrics_url = "http://10.0.0.1:8000/m";
  EXPECT_EQ(expand_ranks({spec}, ranks)[0].more_ports, (std::vector<std::uint16_t>{8001}));
}

TEST(Ranks, TakeANamedMetricsPageAlongWhenItIsAtTheSamePort) {
  endpoints::EndpointSpec spec = pod("10.0.0.1:8000");
  spec.metrics_url = "http://10.0.0.1:8000/m";
  EXPECT_EQ(expand_ranks({spec}, listed({8000, 8001}))[1].metrics_url, "http://10.0.0.1:8001/m");
  spec.metrics_url = "http://10.0.0.1:9090/m";
  EXPECT_EQ(expand_ranks({spec}, listed({8000, 8001}))[1].metrics_url, "http://10.0.0.1:9090/m");
}

TEST(RankPorts, AreFoundAndReplacedInEveryKindOfAddress) {
  EXPECT_EQ(port_of("host:8000"), 8000U);
  EXPECT_EQ(port_of("[fd00::1]:8000"), 8000U);
  EXPECT_EQ(port_of("http://host:8000/v1"), 8000U);
  EXPECT_EQ(port_of("http://host/v1"), 0U);
  EXPECT_EQ(port_of("host:99999"), 0U);
  EXPECT_EQ(port_of(""), 0U);
  EXPECT_EQ(with_port("http://host/v1", 81), "http://host:81/v1");
  EXPECT_EQ(with_port("http://[fd00::1]:8000/v1", 81), "http://[fd00::1]:81/v1");
  EXPECT_EQ(with_port("host", 81), "host:81");
}

}  // namespace
}  // namespace pickd::discovery

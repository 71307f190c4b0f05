// Topology: who serves which model, who is called what.
#include "daemon/endpoints/topology.hpp"

#include <gtest/gtest.h>

namespace pickd::endpoints {
namespace {

TopologyEndpoint entry(std::uint16_t id, const std::string& name,
                       std::vector<std::string> models = {}) {
  TopologyEndpoint made;
  made.id = id;
  made.name = name;
  made.address = name + ":80";
  made.models = std::move(models);
  return made;
}

using Ids = std::vector<std::uint16_t>;

Ids named(const Topology& topology, std::string_view text) {
  Ids ids;
  topology.for_each_named(text, [&](std::uint16_t id) { ids.push_back(id); });
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Topology, NamesTheEndpointsThatListAModelAndThoseThatListNone) {
  const Topology topology(
      {entry(1, "a", {"llama"}), entry(2, "b"), entry(4, "c", {"qwen", "llama"})});
  EXPECT_EQ(*topology.candidates("llama"), (Ids{1, 2, 4}));
  EXPECT_EQ(*topology.candidates("qwen"), (Ids{2, 4}));
  EXPECT_EQ(*topology.candidates("unheard-of"), Ids{2});
  EXPECT_EQ(*topology.candidates(""), (Ids{1, 2, 4}));
}

TEST(Topology, HasNobodyForAModelThatNobodyLists) {
  const Topology topology({entry(1, "a", {"llama"})});
  EXPECT_EQ(topology.candidates("qwen"), nullptr);
  EXPECT_EQ(topology.candidates("llam"), nullptr);
  EXPECT_EQ(topology.candidates("llama2"), nullptr);
}

TEST(Topology, WithoutEndpointsKnowsNoModelAsUnknown) {
  const Topology topology({});
  ASSERT_NE(topology.candidates("llama"), nullptr);
  EXPECT_TRUE(topology.candidates("llama")->empty());
  EXPECT_TRUE(topology.candidates("")->empty());
}

TEST(Topology, CountsAModelThatIsListedTwiceOnce) {
  const Topology topology({entry(1, "a", {"llama", "llama"})});
  EXPECT_EQ(*topology.candidates("llama"), Ids{1});
}

TEST(Topology, FindsByIdWithHolesBetween) {
  const Topology topology({entry(2, "b"), entry(5, "e")});
  EXPECT_EQ(topology.find(0), nullptr);
  EXPECT_EQ(topology.find(3), nullptr);
  EXPECT_EQ(topology.find(5)->name, "e");
  EXPECT_EQ(topology.find(6), nullptr);
  EXPECT_EQ(topology.find(4095), nullptr);
}

TEST(Topology, FindsByNameAndByAddress) {
  TopologyEndpoint rank = entry(3, "a-rank1");
  rank.address = "a:80";  // two ranks behind one address
  const Topology topology({entry(1, "a"), entry(2, "b"), rank});
  EXPECT_EQ(named(topology, "b"), Ids{2});
  EXPECT_EQ(named(topology, "a:80"), (Ids{1, 3}));
  EXPECT_EQ(named(topology, "nobody"), Ids{});
  EXPECT_EQ(named(topology, ""), Ids{});
  EXPECT_EQ(topology.find_name("a-rank1")->id, 3);
  EXPECT_EQ(topology.find_name("a:80"), nullptr) << "an address is no name";
}

TEST(Topology, TellsANameFromTheEqualAddressOfAnother) {
  TopologyEndpoint first = entry(1, "x");
  first.address = "y";
  TopologyEndpoint second = entry(2, "y");
  second.address = "y";
  const Topology topology({first, second});
  EXPECT_EQ(topology.find_name("y")->id, 2);
  EXPECT_EQ(named(topology, "y"), (Ids{1, 2}));
}

}  // namespace
}  // namespace pickd::endpoints

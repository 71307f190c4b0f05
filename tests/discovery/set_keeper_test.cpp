// What becomes of a source's sets in the endpoint table.
#include "daemon/discovery/set_keeper.hpp"

#include <set>

#include "daemon/base/clock.hpp"
#include "tests/endpoints/table_fixture.hpp"

namespace pickd::discovery {
namespace {

using endpoints::EndpointSpec;

class SetKeeperTest : public endpoints::test::EndpointTableTest {
 protected:
  SetKeeperTest() : EndpointTableTest(4096) { make({}); }

  void make(const config::PoolConfig& pool, std::uint32_t endpoints_max = 4095) {
    config::PoolConfig named = pool;
    named.name = "chat";
    keeper_ = std::make_unique<SetKeeper>(
        SetKeeper::Parts{&table_, &store_, [this] { return tick_; }, endpoints_max, 64}, named);
  }
  static EndpointSpec found(const std::string& name, const std::string& address = "10.0.0.1:8000") {
    EndpointSpec spec;
    spec.name = name;
    spec.address = address;
    return spec;
  }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : store_.current().endpoints()) out.insert(entry.name);
    return out;
  }
  using Names = std::set<std::string>;

  std::uint64_t tick_ = kTick;
  std::unique_ptr<SetKeeper> keeper_;
};

TEST_F(SetKeeperTest, MakesEachSetTheWholeOfItsPool) {
  EXPECT_TRUE(keeper_->take({found("a"), found("b")}).changed);
  EXPECT_EQ(endpoint("a").pool, "chat");
  EXPECT_EQ(endpoint("a").source, "discovery:chat");
  EXPECT_TRUE(keeper_->take({found("b"), found("c")}).changed);
  EXPECT_EQ(names(), (Names{"b", "c"}));
  EXPECT_TRUE(keeper_->take({}).changed);
  EXPECT_EQ(names(), Names{});
}

TEST_F(SetKeeperTest, GivesTheTableNothingWhenASetIsTheOneBefore) {
  EXPECT_TRUE(keeper_->take({found("a")}).changed);
  EXPECT_FALSE(keeper_->take({found("a")}).changed);
}

TEST_F(SetKeeperTest, LeavesWhatScrapesToldOfThoseThatStay) {
  keeper_->take({found("a")});
  record("a").waiting.store(7);
  record("a").told_ticks_max.store(40);
  record("a").scrape_tick.store(kTick + 5);
  keeper_->take({found("a"), found("b")});
  EXPECT_EQ(record("a").waiting.load(), 7U);
  EXPECT_EQ(record("a").scrape_tick.load(), kTick + 5);
  EXPECT_EQ(record("b").waiting.load(), abi::kUnknown32);
}

TEST_F(SetKeeperTest, FillsInWhatTheConfigurationSaysForAllOfAPool) {
  config::PoolConfig pool;
  pool.models = {"llama"};
  pool.discovery = config::DiscoveryConfig{};
  pool.discovery->role = config::Role::kDecode;
  pool.discovery->labels = {{"zone", "a"}, {"gpu", "h100"}};
  pool.discovery->capacity_tokens = 64'000;
  make(pool);
  EndpointSpec own = found("own");
  own.models = {"other"};
  own.labels = {{"zone", "b"}};
  keeper_->take({found("plain"), own});
  EXPECT_EQ(endpoint("plain").models, std::vector<std::string>{"llama"});
  EXPECT_EQ(endpoint("plain").role, abi::Role::kDecode);
  EXPECT_EQ(*endpoint("plain").label("zone"), "a");
  EXPECT_EQ(record("plain").capacity_blocks.load(), 1000U);
  EXPECT_EQ(endpoint("own").models, std::vector<std::string>{"other"});
  EXPECT_EQ(*endpoint("own").label("zone"), "b");
  EXPECT_EQ(*endpoint("own").label("gpu"), "h100");
}

TEST_F(SetKeeperTest, LeavesTheOperatorsEndpointsAloneAndSaysSoOnce) {
  ASSERT_TRUE(table_.replace({found("a", "10.9.9.9:1")}, "file", kTick).ok());
  const auto taken = keeper_->take({found("a"), found("b")});
  EXPECT_EQ(endpoint("a").address, "10.9.9.9:1");
  EXPECT_EQ(names(), (Names{"a", "b"})) << "one mistake costs one endpoint, not the set";
  ASSERT_EQ(taken.complaints.size(), 1U);
  EXPECT_NE(taken.complaints[0].find("file has one of this name"), std::string::npos);
  EXPECT_EQ(taken.left_out, 1U);
  EXPECT_EQ(keeper_->take({found("a"), found("b")}).complaints.size(), 0U);
}

TEST_F(SetKeeperTest, TakesANameOnceItsOwnerLetsGo) {
  ASSERT_TRUE(table_.replace({found("a", "10.9.9.9:1")}, "client:1", kTick).ok());
  keeper_->take({found("a")});
  EXPECT_TRUE(keeper_->left_out());
  ASSERT_TRUE(table_.replace({}, "client:1", kTick).ok());
  keeper_->again();
  EXPECT_EQ(endpoint("a").source, "discovery:chat");
  EXPECT_FALSE(keeper_->left_out());
}

TEST_F(SetKeeperTest, LeavesOutWhatIsWrongOrNamedTwice) {
  EndpointSpec wrong = found("w");
  wrong.address = std::string(200, 'x');
  const auto taken = keeper_->take({found("a"), wrong, found("a", "10.0.0.2:1"), found("b")});
  EXPECT_EQ(names(), (Names{"a", "b"}));
  EXPECT_EQ(endpoint("a").address, "10.0.0.1:8000");
  EXPECT_EQ(taken.left_out, 2U);
}

TEST_F(SetKeeperTest, KeepsItsOwnWhenASetIsTooLarge) {
  ASSERT_TRUE(table_.replace({found("static")}, "file", kTick).ok());
  make({}, 4);
  keeper_->take({found("z1"), found("z2")});
  const auto taken = keeper_->take({found("a"), found("b"), found("c"), found("z1"), found("z2")});
  EXPECT_EQ(names(), (Names{"a", "static", "z1", "z2"}));
  EXPECT_EQ(taken.left_out, 2U);
  ASSERT_EQ(taken.complaints.size(), 1U);
  EXPECT_NE(taken.complaints[0].find("raise state.endpoints_max"), std::string::npos);
}

TEST_F(SetKeeperTest, SurvivesASetOfTenThousand) {
  std::vector<EndpointSpec> many;
  for (int at = 0; at < 10'000; ++at) many.push_back(found("e" + std::to_string(at)));
  const auto taken = keeper_->take(many);
  EXPECT_EQ(taken.endpoints, 4095U);
  EXPECT_EQ(taken.left_out, 10'000U - 4095U);
  EXPECT_EQ(taken.complaints.size(), 1U);
  keeper_->take({found("e1")});
  EXPECT_EQ(names(), Names{"e1"});
}

TEST_F(SetKeeperTest, SaysOnlyTheFirstOfManyMistakes) {
  std::vector<EndpointSpec> many;
  for (int at = 0; at < 1000; ++at) many.push_back(found(std::string(200, 'x')));
  for (int at = 0; at < 1000; ++at) many.push_back(found("e" + std::to_string(at), ""));
  const auto taken = keeper_->take(many);
  EXPECT_LE(taken.complaints.size(), SetKeeper::kComplaintsMax);
  EXPECT_EQ(taken.left_out, 2000U);
}

TEST_F(SetKeeperTest, GivesEachItsOwnWhenAnAddressIsUsedAgain) {
  // Field case 25: P1 moves from .5 to .9, then P2 gets .5.
  keeper_->take({found("p1", "10.0.0.5:8000")});
  const auto first = life("p1").generation();
  tick_ += 10;
  keeper_->take({found("p1", "10.0.0.9:8000")});
  EXPECT_NE(life("p1").generation(), first) << "another address is another engine";
  tick_ += 10;
  keeper_->take({found("p1", "10.0.0.9:8000"), found("p2", "10.0.0.5:8000")});
  EXPECT_EQ(names(), (Names{"p1", "p2"}));
  EXPECT_NE(endpoint("p1").id, endpoint("p2").id);
}

TEST_F(SetKeeperTest, BeginsANewGenerationForAnotherLifeAtTheSameAddress) {
  // Field case 26, where the source knows lives apart.
  EndpointSpec pod = found("p1");
  pod.incarnation = "uid-1";
  keeper_->take({pod});
  const auto first = life("p1").generation();
  keeper_->take({pod, found("p2")});
  EXPECT_EQ(life("p1").generation(), first);
  pod.incarnation = "uid-2";
  keeper_->take({pod});
  EXPECT_NE(life("p1").generation(), first);
}

TEST_F(SetKeeperTest, BeginsANewGenerationForWhatWasGone) {
  // Field case 26, where it does not: gone for 70 s, then back at the same address.
  keeper_->take({found("p1"), found("p2")});
  const auto before = handle("p1");
  keeper_->take({found("p2")});
  tick_ += 1400;
  keeper_->take({found("p1"), found("p2")});
  EXPECT_NE(handle("p1"), before);
  EXPECT_EQ(life("p1").floor(), (tick_ + 1) & abi::kStampMask) << "nothing of before is alive";
}

TEST_F(SetKeeperTest, DrainsAndUndrainsAsTheSourceSays) {
  EndpointSpec pod = found("p1");
  pod.draining = true;
  keeper_->take({pod});
  EXPECT_EQ(state("p1"), abi::EndpointState::kDraining);
  pod.draining = false;
  keeper_->take({pod});
  EXPECT_EQ(state("p1"), abi::EndpointState::kReady);
}

TEST_F(SetKeeperTest, DoesNotUndrainWhatAnOperatorDrained) {
  EndpointSpec pod = found("p1");
  pod.draining = false;
  keeper_->take({pod});
  ASSERT_TRUE(table_.drain("p1", true).ok());
  keeper_->take({pod, found("p2")});
  EXPECT_EQ(state("p1"), abi::EndpointState::kDraining);
}

TEST_F(SetKeeperTest, LeavesOneEndpointWhenThePortsShrinkToOne) {
  // Field case 29.
  config::PoolConfig pool;
  pool.ranks = config::RanksConfig{};
  pool.ranks->behind = config::RanksConfig::Behind::kListedPorts;
  pool.ranks->ports = {8000, 8001, 8002};
  pool.ranks->count = 3;
  make(pool);
  keeper_->take({found("pod")});
  EXPECT_EQ(names(), (Names{"pod", "pod-rank-1", "pod-rank-2"}));
  const auto before = handle("pod");
  pool.ranks->ports = {8000};
  pool.ranks->count = 1;
  make(pool);
  keeper_->take({found("pod")});
  EXPECT_EQ(names(), Names{"pod"});
  EXPECT_EQ(handle("pod"), before) << "the rank that stays keeps its prefixes";
}

TEST_F(SetKeeperTest, TellsWhatAChangeOfAThousandCosts) {
  std::vector<EndpointSpec> many;
  for (int at = 0; at < 1000; ++at) {
    many.push_back(found("vllm-" + std::to_string(at), "10.0.0.1:" + std::to_string(at + 1)));
  }
  keeper_->take(many);
  const std::uint64_t from_ns = base::monotonic_ns();
  constexpr int kChanges = 20;
  for (int change = 0; change < kChanges; ++change) {
    many[static_cast<std::size_t>(change)].name += "-new";
    EXPECT_TRUE(keeper_->take(many).changed);
  }
  const auto us = (base::monotonic_ns() - from_ns) / 1000 / kChanges;
  RecordProperty("us_per_change_of_1000", static_cast<int>(us));
  std::printf("a set of 1,000 endpoints with one change: %d us\n", static_cast<int>(us));
  EXPECT_EQ(names().size(), 1000U);
}

}  // namespace
}  // namespace pickd::discovery

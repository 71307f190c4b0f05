// The sets of sources: each source owns its endpoints, and a new set replaces only its own.
#include <cerrno>
#include <set>

#include "tests/endpoints/table_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

class EndpointSources : public EndpointTableTest {
 protected:
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : store_.current().endpoints()) found.insert(entry.name);
    return found;
  }
  using Names = std::set<std::string>;
};

TEST_F(EndpointSources, AddsUpdatesAndRemovesTheOwnAndLeavesTheOthers) {
  add("other");
  ASSERT_TRUE(table_.replace({spec("a"), spec("b")}, "file", kTick).ok());
  EXPECT_EQ(names(), (Names{"a", "b", "other"}));
  const auto life_a = life("a").bits;
  EndpointSpec changed = spec("a", "", {"llama"});
  ASSERT_TRUE(table_.replace({changed, spec("c")}, "file", kTick + 1).ok());
  EXPECT_EQ(names(), (Names{"a", "c", "other"}));
  EXPECT_EQ(life("a").bits, life_a) << "what stays keeps its prefixes";
  EXPECT_EQ(endpoint("a").models, std::vector<std::string>{"llama"});
  ASSERT_TRUE(table_.replace({}, "file", kTick + 2).ok());
  EXPECT_EQ(names(), Names{"other"});
}

TEST_F(EndpointSources, RefuseASetWithANameOfAnotherSourceAsAWhole) {
  add("other");
  const auto refused = table_.replace({spec("a"), spec("other")}, "file", kTick);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -EEXIST);
  EXPECT_NE(refused.error().text.find("belongs to test"), std::string::npos);
  EXPECT_EQ(names(), Names{"other"});
}

TEST_F(EndpointSources, RefuseASetThatNamesOneTwice) {
  ASSERT_TRUE(table_.replace({spec("keep")}, "file", kTick).ok());
  const auto refused = table_.replace({spec("a"), spec("a", "b:1")}, "file", kTick);
  EXPECT_EQ(refused.error().code, -EEXIST);
  EXPECT_EQ(names(), Names{"keep"});
}

TEST_F(EndpointSources, RefuseASetWithOneWrongSpecAsAWhole) {
  ASSERT_TRUE(table_.replace({spec("keep")}, "file", kTick).ok());
  EndpointSpec wrong = spec("b");
  wrong.kv_use_ppm = 1'000'001;
  const auto refused = table_.replace({spec("a"), wrong}, "file", kTick);
  EXPECT_EQ(refused.error().code, -EINVAL);
  EXPECT_EQ(names(), Names{"keep"});
}

TEST_F(EndpointSources, RefuseASetThatDoesNotFitBesideTheOthers) {
  add("other");
  std::vector<EndpointSpec> specs;
  for (int at = 0; at < 7; ++at) specs.push_back(spec("e" + std::to_string(at)));
  EXPECT_EQ(table_.replace(specs, "file", kTick).error().code, -E2BIG);
  EXPECT_EQ(names(), Names{"other"});
  specs.pop_back();
  ASSERT_TRUE(table_.replace(specs, "file", kTick).ok());
  EXPECT_EQ(table_.count(), 7U);
}

TEST_F(EndpointSources, ExchangeAFullSetForAnotherInOneStep) {
  std::vector<EndpointSpec> old_set;
  std::vector<EndpointSpec> new_set;
  for (int at = 0; at < 7; ++at) {
    old_set.push_back(spec("old" + std::to_string(at)));
    new_set.push_back(spec("new" + std::to_string(at)));
  }
  ASSERT_TRUE(table_.replace(old_set, "file", kTick).ok());
  ASSERT_TRUE(table_.replace(new_set, "file", kTick).ok());
  EXPECT_EQ(table_.count(), 7U);
  std::set<std::uint16_t> ids;
  for (const auto& entry : store_.current().endpoints()) ids.insert(entry.id);
  EXPECT_EQ(ids.size(), 7U);
}

class EveryEndpointId : public EndpointTableTest {
 protected:
  EveryEndpointId() : EndpointTableTest(abi::kEndpointIdsMax) {}
};

TEST_F(EveryEndpointId, IsGivenToASetOfFourThousandEndpoints) {
  std::vector<EndpointSpec> specs;
  for (std::uint32_t at = 1; at < ids_; ++at) specs.push_back(spec("e" + std::to_string(at)));
  ASSERT_TRUE(table_.replace(specs, "file", kTick).ok());
  EXPECT_EQ(table_.count(), 4095U);
  EXPECT_EQ(table_.count_ready(), 4095U);
  EXPECT_EQ(endpoint("e4095").id, 4095);
  EXPECT_EQ(table_.add(spec("more"), "file", kTick).error().code, -E2BIG);
}

struct BadSpec {
  const char* what;
  void (*spoil)(EndpointSpec&);
  const char* words;
};

class CheckSpec : public ::testing::TestWithParam<BadSpec> {};

TEST(CheckSpecText, IsOneLineWhateverTheNameIs) {
  EndpointSpec made = spec("a");
  made.name = "p\n\x1b[2J" + std::string(5000, 'y');
  const std::string text = check_spec(made).error().text;
  EXPECT_LT(text.size(), 250U);
  EXPECT_EQ(text.find_first_of("\n\x1b"), std::string::npos);
  EXPECT_EQ(text.rfind("endpoint \"p??[2Jyyy", 0), 0U) << text;
}

TEST_P(CheckSpec, RefusesWithWordsOnWhatWouldBeRight) {
  EndpointSpec made = spec("a");
  ASSERT_TRUE(check_spec(made).ok());
  GetParam().spoil(made);
  const auto checked = check_spec(made);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, -EINVAL);
  EXPECT_NE(checked.error().text.find(GetParam().words), std::string::npos) << checked.error().text;
}

const BadSpec kBadSpecs[] = {
    {"EmptyName", [](EndpointSpec& s) { s.name = ""; }, "1 to 127 bytes"},
    {"LongName", [](EndpointSpec& s) { s.name = std::string(128, 'n'); }, "1 to 127 bytes"},
    {"EmptyAddress", [](EndpointSpec& s) { s.address = ""; }, "address must have 1 to 127"},
    {"LongAddress", [](EndpointSpec& s) { s.address = std::string(128, 'a'); }, "1 to 127 bytes"},
    {"NulInName", [](EndpointSpec& s) { s.name = std::string("a\0b", 3); }, "NUL"},
    {"NulInAddress", [](EndpointSpec& s) { s.address = std::string("a\0b", 3); }, "NUL"},
    {"AddressWithoutPort", [](EndpointSpec& s) { s.address = "h"; }, "needs a port or a scheme"},
    {"AddressWithoutHost", [](EndpointSpec& s) { s.address = ":8"; }, "needs a port or a scheme"},
    {"PortTooHigh", [](EndpointSpec& s) { s.address = "h:99999"; }, "port from 1 to 65535, is"},
    {"BlankInAddress", [](EndpointSpec& s) { s.address = "a b:1"; }, "must not hold spaces"},
    {"PathBehindPort", [](EndpointSpec& s) { s.address = "h:8/<b>"; }, "end with a port"},
    {"MetricsOfAFile", [](EndpointSpec& s) { s.metrics_url = "file:///x"; }, "metrics URL must be"},
    {"MetricsOfAUser", [](EndpointSpec& s) { s.metrics_url = "http://u@h/m"; }, "a user name"},
    {"CapacityBelowZero", [](EndpointSpec& s) { s.capacity_blocks = UINT64_MAX; },
     "at most 1000000"},
    {"EmptyPool", [](EndpointSpec& s) { s.pool = ""; }, "pool"},
    {"TooManyModels", [](EndpointSpec& s) { s.models.assign(65, "m"); }, "64 models"},
    {"EmptyModel", [](EndpointSpec& s) { s.models = {""}; }, "1 to 255 bytes"},
    {"LongModel", [](EndpointSpec& s) { s.models = {std::string(256, 'm')}; }, "1 to 255 bytes"},
    {"TooManyLabels", [](EndpointSpec& s) { s.labels.resize(65); }, "64 labels"},
    {"TooManyActive", [](EndpointSpec& s) { s.adapters_active.assign(17, "x"); }, "16 adapters"},
    {"TooManyWaiting", [](EndpointSpec& s) { s.adapters_waiting.assign(17, "x"); }, "16 adapters"},
    {"KvUseOverOne", [](EndpointSpec& s) { s.kv_use_ppm = 1'000'001; }, "0 to 1000000"},
};
INSTANTIATE_TEST_SUITE_P(Each, CheckSpec, ::testing::ValuesIn(kBadSpecs),
                         [](const auto& param) { return std::string(param.param.what); });

TEST(CheckSpecLimits, TakesEverythingAtItsLimit) {
  EndpointSpec made = spec(std::string(127, 'n'), std::string(125, 'a') + ":1");
  made.models.assign(64, std::string(255, 'm'));
  made.labels.resize(64);
  made.adapters_active.assign(16, "x");
  made.adapters_waiting.assign(16, "y");
  made.kv_use_ppm = 1'000'000;
  made.capacity_blocks = kCapacityBlocksMax;
  EXPECT_TRUE(check_spec(made).ok());
}

}  // namespace
}  // namespace pickd::endpoints::test

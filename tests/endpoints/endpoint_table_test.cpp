// The endpoint table, one change at a time: ids, generations, what the records and the topology
// say.
#include <cerrno>
#include <cstring>

#include "tests/endpoints/table_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

using EndpointTable = EndpointTableTest;

std::string text_of(const abi::Word* words) {
  std::string text;
  for (std::size_t at = 0; at < 16; ++at) {
    const std::uint64_t word = words[at].load();
    text.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return text.c_str();
}

TEST_F(EndpointTable, GivesAnAddedEndpointAnIdAReadyRecordAndAPlaceInTheTopology) {
  EndpointSpec told = spec("a", "10.0.0.1:8000", {"llama"});
  told.waiting = 3;
  told.running = 4;
  told.kv_use_ppm = 250'000;
  told.adapters_max = 2;
  told.adapters_active = {"x"};
  told.adapters_waiting = {"y"};
  told.labels = {{"zone", "b"}};
  told.role = abi::Role::kDecode;
  ASSERT_TRUE(table_.add(told, "file", kTick).ok());

  EXPECT_EQ(endpoint("a").id, 1);
  EXPECT_EQ(endpoint("a").source, "file");
  EXPECT_EQ(endpoint("a").pool, "default");
  ASSERT_NE(endpoint("a").label("zone"), nullptr);
  EXPECT_EQ(*endpoint("a").label("zone"), "b");
  EXPECT_EQ(endpoint("a").label("rack"), nullptr);
  EXPECT_EQ(state("a"), abi::EndpointState::kReady);
  EXPECT_EQ(life("a").generation(), endpoint("a").generation);
  EXPECT_EQ(life("a").floor(), kTick + 1);
  EXPECT_EQ(life("a").horizon(), kTick + 1);
  EXPECT_EQ(record("a").confirmed_life.load(), record("a").life.load());
  EXPECT_EQ(record("a").role.load(), static_cast<std::uint32_t>(abi::Role::kDecode));
  EXPECT_EQ(record("a").waiting.load(), 3U);
  EXPECT_EQ(record("a").running.load(), 4U);
  EXPECT_EQ(record("a").kv_use_ppm.load(), 250'000U);
  EXPECT_EQ(record("a").adapters_max.load(), 2U);
  EXPECT_EQ(record("a").adapters_active[0].load(), adapter_hash("x", 1));
  EXPECT_EQ(record("a").adapters_active[1].load(), 0U);
  EXPECT_EQ(record("a").adapters_waiting[0].load(), adapter_hash("y", 1));
  EXPECT_EQ(text_of(record("a").name), "a");
  EXPECT_EQ(text_of(record("a").address), "10.0.0.1:8000");
  EXPECT_EQ(record("a").text_version.load() % 2, 0U);
  EXPECT_EQ(high_water_.load(), 2U);
  EXPECT_EQ(table_.count(), 1U);
}

TEST_F(EndpointTable, TakesTheConfiguredCapacityUnlessTheEndpointNamesOne) {
  add("plain");
  EndpointSpec big = spec("big");
  big.capacity_blocks = 9'000;
  ASSERT_TRUE(table_.add(big, "test", kTick).ok());
  EXPECT_EQ(record("plain").capacity_blocks.load(), 500U);
  EXPECT_EQ(record("big").capacity_blocks.load(), 9'000U);
}

TEST_F(EndpointTable, KeepsUnknownLoadUnknown) {
  add("a");
  EXPECT_EQ(record("a").waiting.load(), abi::kUnknown32);
  EXPECT_EQ(record("a").running.load(), abi::kUnknown32);
  EXPECT_EQ(record("a").kv_use_ppm.load(), abi::kUnknown32);
}

TEST_F(EndpointTable, RefusesANameThatIsTaken) {
  add("a");
  const auto again = table_.add(spec("a", "other:1"), "another", kTick);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, -EEXIST);
  EXPECT_NE(again.error().text.find("\"a\""), std::string::npos);
  EXPECT_EQ(endpoint("a").address, "a:8000");
  EXPECT_EQ(table_.count(), 1U);
}

TEST_F(EndpointTable, AnswersForAnUnknownNameThatThereIsNone) {
  add("a");
  EXPECT_EQ(table_.update(spec("b"), kTick).error().code, -ENOENT);
  EXPECT_EQ(table_.remove("b", kTick).error().code, -ENOENT);
  EXPECT_EQ(table_.drain("b", true).error().code, -ENOENT);
  EXPECT_EQ(table_.reset("b", kTick).error().code, -ENOENT);
  // An address is no name.
  EXPECT_EQ(table_.remove("a:8000", kTick).error().code, -ENOENT);
}

TEST_F(EndpointTable, UpdatesWhatIsToldWithoutANewGeneration) {
  add("a");
  const auto before = life("a").bits;
  record("a").adapters_recent[0].store(77);
  EndpointSpec told = spec("a", "", {"llama"});
  told.waiting = 9;
  ASSERT_TRUE(table_.update(told, kTick + 50).ok());
  EXPECT_EQ(life("a").bits, before);
  EXPECT_EQ(record("a").waiting.load(), 9U);
  EXPECT_EQ(record("a").scrape_tick.load(), kTick + 50);
  EXPECT_EQ(record("a").adapters_recent[0].load(), 77U);
  EXPECT_EQ(endpoint("a").models, std::vector<std::string>{"llama"});
}

TEST_F(EndpointTable, TakesAnotherAddressForAnotherEngine) {
  add("a");
  const auto before = life("a");
  record("a").inflight_requests.store(abi::CountWord::make(before.generation(), 5).bits);
  record("a").inflight_tokens.store(abi::CountWord::make(before.generation(), 500).bits);
  record("a").adapters_recent[0].store(77);
  ASSERT_TRUE(table_.update(spec("a", "10.0.0.9:8000"), kTick + 100).ok());
  EXPECT_EQ(life("a").generation(), before.generation() + 1);
  EXPECT_EQ(endpoint("a").generation, before.generation() + 1);
  EXPECT_EQ(life("a").floor(), kTick + 101);
  EXPECT_EQ(count_of(record("a").inflight_requests), 0U);
  EXPECT_EQ(count_of(record("a").inflight_tokens), 0U);
  EXPECT_EQ(record("a").adapters_recent[0].load(), 0U);
  EXPECT_EQ(text_of(record("a").address), "10.0.0.9:8000");
  EXPECT_EQ(endpoint("a").address, "10.0.0.9:8000");
}

// Field case 25: an address that changes hands.
TEST_F(EndpointTable, LetsAnAddressPassToAnotherEndpointThatStartsWithNothing) {
  ASSERT_TRUE(table_.add(spec("p1", "10.0.0.5:80"), "test", kTick).ok());
  ASSERT_TRUE(table_.update(spec("p1", "10.0.0.9:80"), kTick + 1).ok());
  ASSERT_TRUE(table_.add(spec("p2", "10.0.0.5:80"), "test", kTick + 2).ok());
  std::vector<std::string> holders;
  store_.current().for_each_named(
      "10.0.0.5:80", [&](std::uint16_t id) { holders.push_back(store_.current().find(id)->name); });
  EXPECT_EQ(holders, std::vector<std::string>{"p2"});
  EXPECT_NE(endpoint("p1").id, endpoint("p2").id);
  EXPECT_EQ(life("p2").floor(), kTick + 3);
}

TEST_F(EndpointTable, RemovesAnEndpointWithItsPrefixesAndCounts) {
  add("a");
  const std::uint16_t id = endpoint("a").id;
  const auto before = life("a");
  ASSERT_TRUE(table_.remove("a", kTick + 10).ok());
  EXPECT_EQ(store_.current().find_name("a"), nullptr);
  EXPECT_EQ(store_.current().find(id), nullptr);
  EXPECT_EQ(records_[id].state.load(), static_cast<std::uint32_t>(abi::EndpointState::kFree));
  const abi::LifeWord after{records_[id].life.load()};
  EXPECT_EQ(after.generation(), before.generation() + 1);
  EXPECT_EQ(after.floor(), kTick + 11);
}

TEST_F(EndpointTable, DrainsAndTakesBack) {
  add("a");
  add("b");
  const auto before = life("a").bits;
  ASSERT_TRUE(table_.drain("a", true).ok());
  EXPECT_EQ(state("a"), abi::EndpointState::kDraining);
  EXPECT_EQ(table_.count_ready(), 1U);
  EXPECT_EQ(table_.count(), 2U);
  ASSERT_TRUE(table_.drain("a", false).ok());
  EXPECT_EQ(state("a"), abi::EndpointState::kReady);
  EXPECT_EQ(life("a").bits, before);
}

TEST_F(EndpointTable, ResetsPrefixesAndCountsAndKeepsTheState) {
  add("a");
  ASSERT_TRUE(table_.drain("a", true).ok());
  const auto before = life("a");
  record("a").inflight_requests.store(abi::CountWord::make(before.generation(), 5).bits);
  ASSERT_TRUE(table_.reset("a", kTick + 7).ok());
  EXPECT_EQ(state("a"), abi::EndpointState::kDraining);
  EXPECT_EQ(life("a").generation(), before.generation() + 1);
  EXPECT_EQ(life("a").floor(), kTick + 8);
  EXPECT_EQ(endpoint("a").generation, life("a").generation());
  EXPECT_EQ(count_of(record("a").inflight_requests), 0U);
  EXPECT_EQ(endpoint("a").name, "a");
}

// A pick of the generation between two resets of one tick stamps at that generation's floor.
TEST_F(EndpointTable, GivesEachResetOfOneTickAFloorOfItsOwn) {
  add("a", kTick);
  for (std::uint32_t reset = 0; reset < 20; ++reset) {
    const std::uint32_t floor_before = life("a").floor();
    ASSERT_TRUE(table_.reset("a", kTick).ok());
    ASSERT_GT(life("a").floor(), floor_before) << reset;
  }
  // Later resets follow the clock again.
  ASSERT_TRUE(table_.reset("a", kTick + 500).ok());
  EXPECT_EQ(life("a").floor(), kTick + 501);
}

TEST_F(EndpointTable, KeepsTheFloorBehindTheWrapOfTheStamps) {
  const std::uint64_t wrap = 1ULL << abi::kStampBits;
  add("a", wrap - 1);
  EXPECT_EQ(life("a").floor(), 0U);
  ASSERT_TRUE(table_.reset("a", wrap + 5).ok());
  EXPECT_EQ(life("a").floor(), 6U);
}

TEST_F(EndpointTable, UsesAnIdAgainOnlyWhenAllWereUsed) {
  for (const char* name : {"a", "b", "c"}) add(name);
  ASSERT_TRUE(table_.remove("b", kTick).ok());
  for (const char* name : {"d", "e", "f", "g"}) add(name);
  EXPECT_EQ(endpoint("d").id, 4);
  EXPECT_EQ(endpoint("g").id, 7);
  const abi::LifeWord retired{records_[2].life.load()};
  add("h");  // every id was used: now the one that was given back
  EXPECT_EQ(endpoint("h").id, 2);
  EXPECT_GT(life("h").generation(), retired.generation());
}

TEST_F(EndpointTable, SaysThatItIsFullAndWhichSettingToRaise) {
  for (std::uint32_t at = 1; at < ids_; ++at) add("e" + std::to_string(at));
  const auto full = table_.add(spec("one-more"), "test", kTick);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, -E2BIG);
  EXPECT_NE(full.error().text.find("7 endpoints"), std::string::npos) << full.error().text;
  EXPECT_NE(full.error().text.find("state.endpoints_max"), std::string::npos);
  ASSERT_TRUE(table_.remove("e3", kTick).ok());
  EXPECT_TRUE(table_.add(spec("one-more"), "test", kTick).ok());
}

}  // namespace
}  // namespace pickd::endpoints::test

// The pages of several ranks as one engine's facts.
#include "daemon/scrape/join_facts.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace pickd::scrape {
namespace {

using endpoints::EngineFacts;

EngineFacts rank_page(std::uint32_t waiting, std::uint32_t running, std::uint32_t kv_ppm) {
  EngineFacts facts;
  facts.waiting = waiting;
  facts.running = running;
  facts.kv_use_ppm = kv_ppm;
  facts.kv_use_max_ppm = kv_ppm;
  facts.ranks = 1;
  facts.block_tokens = 16;
  facts.blocks = 1000;
  return facts;
}

TEST(JoinFacts, SumsTheCountsAveragesTheCacheAndKeepsTheFullest) {
  // The numbers of the four ranks that metrics page 03 has behind one port.
  const EngineFacts all = join_facts({rank_page(117, 51, 1'000'000), rank_page(108, 31, 986'000),
                                      rank_page(0, 40, 410'000), rank_page(0, 38, 350'000)});
  EXPECT_EQ(all.waiting, 225U);
  EXPECT_EQ(all.running, 160U);
  EXPECT_EQ(all.kv_use_ppm, 686'500U);
  EXPECT_EQ(all.kv_use_max_ppm, 1'000'000U);
  EXPECT_EQ(all.ranks, 4U);
  EXPECT_EQ(all.block_tokens, 16U);
  EXPECT_EQ(all.blocks, 4000U);
}

TEST(JoinFacts, WeighsTheCacheOfAPageByItsRanks) {
  EngineFacts three = rank_page(3, 3, 200'000);
  three.ranks = 3;
  three.kv_use_max_ppm = 500'000;
  const EngineFacts all = join_facts({three, rank_page(1, 1, 600'000)});
  EXPECT_EQ(all.kv_use_ppm, 300'000U);
  EXPECT_EQ(all.kv_use_max_ppm, 600'000U);
  EXPECT_EQ(all.ranks, 4U);
}

TEST(JoinFacts, NeverLetsAPartStandForTheSum) {
  EngineFacts silent = rank_page(0, 0, 0);
  silent.waiting = abi::kUnknown32;
  silent.kv_use_ppm = abi::kUnknown32;
  silent.blocks = 0;
  const EngineFacts all = join_facts({rank_page(5, 5, 100'000), silent});
  EXPECT_EQ(all.waiting, abi::kUnknown32);
  EXPECT_EQ(all.running, 5U);
  EXPECT_EQ(all.kv_use_ppm, abi::kUnknown32);
  EXPECT_EQ(all.kv_use_max_ppm, abi::kUnknown32);
  EXPECT_EQ(all.blocks, 0U);
  EXPECT_EQ(all.block_tokens, abi::kUnknown32);
}

TEST(JoinFacts, TakesASumThatNoEnginesHaveForUnknown) {
  const std::uint32_t most = (1U << 31) - 1;
  EXPECT_EQ(
      join_facts({rank_page(most, 1, 0), rank_page(most, 1, 0), rank_page(most, 1, 0)}).waiting,
      abi::kUnknown32);
}

TEST(JoinFacts, DoesNotBelieveABlockSizeOnWhichTheRanksDisagree) {
  EngineFacts other = rank_page(0, 0, 0);
  other.block_tokens = 32;
  EXPECT_EQ(join_facts({rank_page(0, 0, 0), other}).block_tokens, abi::kUnknown32);
}

TEST(JoinFacts, HasTheAdaptersOfAnyRankAndRoomAsTheRankWithTheLeast) {
  EngineFacts one = rank_page(0, 0, 0);
  one.tells_adapters = true;
  one.adapters_max = 4;
  one.adapters_active = {"a", "b"};
  EngineFacts two = one;
  two.adapters_max = 2;
  two.adapters_active = {"b", "c"};
  two.adapters_waiting = {"d"};
  const EngineFacts all = join_facts({one, two, rank_page(0, 0, 0)});
  EXPECT_TRUE(all.tells_adapters);
  EXPECT_EQ(all.adapters_max, 2U);
  EXPECT_EQ(all.adapters_active, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(all.adapters_waiting, (std::vector<std::string>{"d"}));
  EXPECT_FALSE(join_facts({rank_page(0, 0, 0), rank_page(0, 0, 0)}).tells_adapters);
}

TEST(JoinFacts, SumsTheModelsWhereEachPageTellsOfThem) {
  EngineFacts one = rank_page(3, 3, 0);
  one.models = {{"a", 1, 2}, {"b", 2, 1}};
  EngineFacts two = rank_page(1, 0, 0);
  two.models = {{"b", 1, 0}, {"c", 0, 0}};
  const EngineFacts all = join_facts({one, two});
  ASSERT_EQ(all.models.size(), 3U);
  EXPECT_EQ(all.models[1].model, "b");
  EXPECT_EQ(all.models[1].waiting, 3U);
  EXPECT_EQ(all.models[1].running, 1U);
  EXPECT_TRUE(join_facts({one, rank_page(0, 0, 0)}).models.empty()) << "whose the rest is: unknown";
}

TEST(JoinFacts, KeepsTheProgressOfEachPageBesideTheSum) {
  EngineFacts one = rank_page(0, 0, 0);
  one.process_start_s = 1000;
  one.progress = 50;
  one.progress_series = 2;
  EngineFacts two = one;
  two.process_start_s = 2000;
  two.progress = 7;
  const EngineFacts all = join_facts({one, two});
  EXPECT_EQ(all.process_start_s, 2000);
  EXPECT_EQ(all.progress, 57);
  EXPECT_EQ(all.progress_series, 4U);
  ASSERT_EQ(all.pages.size(), 2U);
  EXPECT_EQ(all.pages[1].progress, 7);
  EXPECT_EQ(all.pages[0].process_start_s, 1000);
  const EngineFacts half = join_facts({one, rank_page(0, 0, 0)});
  EXPECT_TRUE(std::isnan(half.process_start_s));
  EXPECT_TRUE(std::isnan(half.progress));
}

TEST(JoinFacts, LeavesOnePageAsItIs) {
  const EngineFacts one = join_facts({rank_page(1, 2, 3)});
  EXPECT_EQ(one.waiting, 1U);
  EXPECT_TRUE(one.pages.empty());
}

}  // namespace
}  // namespace pickd::scrape

// The page's history: rates and percentiles out of two readings of the facts.
#include "daemon/admin/history.hpp"

#include <gtest/gtest.h>

namespace pickd::admin {
namespace {

constexpr std::array<std::uint64_t, 3> kBounds = {100, 200, 400};
constexpr base::HistogramShape kShape{kBounds, 1.0};

base::HistogramCounts counts(std::vector<std::uint64_t> buckets) {
  return {&kShape, std::move(buckets), 0};
}

TEST(Percentile, LiesStraightBetweenTheBoundsOfItsBucket) {
  const auto none = counts({0, 0, 0, 0});
  EXPECT_EQ(percentile_between(none, counts({10, 0, 0, 0}), .5), 50);
  EXPECT_EQ(percentile_between(none, counts({0, 10, 0, 0}), .5), 150);
  EXPECT_EQ(percentile_between(none, counts({5, 5, 0, 0}), .75), 150);
  EXPECT_EQ(percentile_between(none, counts({0, 0, 0, 3}), .5), 400);
  EXPECT_EQ(percentile_between(none, none, .5), std::nullopt);
}

TEST(Percentile, CountsOnlyWhatCameSince) {
  EXPECT_EQ(percentile_between(counts({100, 0, 0, 0}), counts({100, 0, 2, 0}), .5), 300);
  EXPECT_EQ(percentile_between({}, counts({0, 2, 0, 0}), .5), 150);
}

Facts facts_at(double uptime_s, std::uint64_t picks, std::uint64_t asked, std::uint64_t matched) {
  Facts facts;
  facts.uptime_s = uptime_s;
  facts.counters[static_cast<std::size_t>(abi::Counter::picks)] = picks;
  facts.counters[static_cast<std::size_t>(abi::Counter::prompt_blocks)] = asked;
  facts.counters[static_cast<std::size_t>(abi::Counter::match_blocks)] = matched;
  return facts;
}

TEST(History, MakesRatesOfCounts) {
  History history;
  history.add(facts_at(1, 100, 0, 0));
  EXPECT_TRUE(history.points().empty()) << "one reading is no rate";
  history.add(facts_at(3, 300, 80, 20));
  ASSERT_EQ(history.points().size(), 1U);
  EXPECT_DOUBLE_EQ(history.points()[0].picks_per_s, 100);
  EXPECT_EQ(history.points()[0].match_share, .25);
  history.add(facts_at(4, 300, 80, 20));
  EXPECT_DOUBLE_EQ(history.points()[1].picks_per_s, 0);
  EXPECT_EQ(history.points()[1].match_share, std::nullopt) << "nothing was asked for";
}

TEST(History, KeepsTheNewestPointsAndTheirNumbers) {
  History history;
  for (std::size_t at = 0; at < History::kPointsMax + 5; ++at)
    history.add(facts_at(static_cast<double>(at), at, 0, 0));
  EXPECT_EQ(history.points().size(), History::kPointsMax);
  EXPECT_EQ(history.points().back().number, History::kPointsMax + 4);
  EXPECT_EQ(history.points().front().number, 5U);
}

}  // namespace
}  // namespace pickd::admin

// Pickers that draw: how often each candidate wins.
#include <cmath>
#include <limits>
#include <set>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

TEST(RandomPicker, TakesEveryCandidateAlikeWhateverTheScores) {
  RigOptions options;
  options.scheduling = scheduling({{"active-request-scorer"}, {"random-picker"}});
  PickRig rig(options);
  rig.add_endpoints(5);
  rig.set_load("e1", 100, 0);
  Tally first;
  Tally last;
  for (int turn = 0; turn < 10'000; ++turn) {
    auto request = rig.request();
    request.dry_run = true;
    const auto names = rig.names(rig.pick(request));
    ASSERT_EQ(std::set(names.begin(), names.end()).size(), 5U) << "each once";
    ++first[names.front()];
    ++last[names.back()];
  }
  for (const Tally& tally : {first, last}) {
    for (const auto& [name, count] : tally) {
      EXPECT_GT(count, 1800U) << name;
      EXPECT_LT(count, 2200U) << name;
    }
  }
}

TEST(RandomPicker, ListsNoMoreThanAsked) {
  RigOptions options;
  options.scheduling = scheduling({{"random-picker", std::nullopt, "{maxNumOfEndpoints: 3}"}});
  PickRig rig(options);
  rig.add_endpoints(6);
  EXPECT_EQ(rig.pick(rig.request()).count, 3U);
  auto request = rig.request();
  request.endpoints_max = 2;
  EXPECT_EQ(rig.pick(request).count, 2U);
}

// Sums of 1, 0.5 and 0.5, so shares of 1/2, 1/4, 1/4; A-Res draws in proportion.
TEST(WeightedRandomPicker, DrawsInProportionToTheSums) {
  RigOptions options;
  options.scheduling = scheduling({{"kv-cache-utilization-scorer"}, {"weighted-random-picker"}});
  PickRig rig(options);
  rig.add_endpoints(4);
  rig.record("e1").kv_use_ppm.store(0);
  rig.record("e2").kv_use_ppm.store(500'000);
  rig.record("e3").kv_use_ppm.store(500'000);
  rig.record("e4").kv_use_ppm.store(1'000'000);
  Tally tally;
  for (int turn = 0; turn < 10'000; ++turn) {
    auto request = rig.request();
    request.dry_run = true;
    const PickResult result = rig.pick(request);
    ++tally[rig.name(result)];
    ASSERT_EQ(rig.name(result, 3), "e4") << "no weight, after all others";
  }
  EXPECT_NEAR(tally["e1"], 5000, 250);
  EXPECT_NEAR(tally["e2"], 2500, 220);
  EXPECT_NEAR(tally["e3"], 2500, 220);
}

TEST(WeightedRandomPicker, DrawsAlikeWhenNobodyHasAScore) {
  RigOptions options;
  options.scheduling = scheduling({{"queue-scorer", 0.0}, {"weighted-random-picker"}});
  PickRig rig(options);
  rig.add_endpoints(4);
  Tally tally;
  for (int turn = 0; turn < 4000; ++turn) ++tally[rig.served(rig.request())];
  for (const auto& [name, count] : tally) {
    EXPECT_GT(count, 850U) << name;
    EXPECT_LT(count, 1150U) << name;
  }
}

TEST(WeightedRandomPicker, DrawsInProportionUnderTheLeastAndTheGreatestWeights) {
  for (const double weight :
       {std::numeric_limits<double>::denorm_min() * 1024, std::numeric_limits<double>::max()}) {
    RigOptions options;
    options.scheduling = scheduling({{"kv-cache-utilization-scorer", weight},
                                     {"running-requests-size-scorer", weight},
                                     {"weighted-random-picker"}});
    PickRig rig(options);
    rig.add_endpoints(2);
    for (const char* name : {"e1", "e2"}) {
      rig.record(name).running.store(0);
      rig.record(name).kv_use_ppm.store(0);
    }
    Tally tally;
    for (int turn = 0; turn < 2000; ++turn) {
      auto request = rig.request();
      request.dry_run = true;
      ++tally[rig.name(rig.pick(request))];
    }
    EXPECT_NEAR(tally["e1"], 1000, 150) << weight;
  }
}

// True sums 2, 1 and 0 times the greatest double.
TEST(MaxScorePicker, OrdersByWeightsWhoseSumNoDoubleHolds) {
  constexpr double kMost = std::numeric_limits<double>::max();
  for (const double sign : {1.0, -1.0}) {
    RigOptions options;
    options.scheduling =
        scheduling({{"kv-cache-utilization-scorer", sign * kMost}, {"queue-scorer", sign * kMost}});
    PickRig rig(options);
    rig.add_endpoints(3);
    rig.record("e1").kv_use_ppm.store(0);
    rig.record("e2").kv_use_ppm.store(0);
    rig.record("e3").kv_use_ppm.store(1'000'000);
    rig.record("e1").waiting.store(0);
    rig.record("e2").waiting.store(9);
    rig.record("e3").waiting.store(9);
    const PickResult result = rig.pick(rig.request());
    EXPECT_EQ(rig.name(result, sign > 0 ? 0 : 2), "e1");
    EXPECT_EQ(rig.name(result, 1), "e2");
    EXPECT_EQ(rig.name(result, sign > 0 ? 2 : 0), "e3");
    for (std::uint32_t place = 0; place < 3; ++place)
      EXPECT_TRUE(std::isfinite(result.endpoints[place].score)) << place;
    EXPECT_GT(result.endpoints[0].score, result.endpoints[1].score);
    EXPECT_NE(result.reason, abi::Reason::kTie);
  }
}

// They are kept as they are, bit for bit, until their sum could overflow.
TEST(MaxScorePicker, KeepsLargeWeightsWhoseSumFits) {
  RigOptions options;
  options.scheduling = scheduling({{"kv-cache-utilization-scorer", 1.3e38}});
  PickRig rig(options);
  rig.add_endpoints(1);
  rig.record("e1").kv_use_ppm.store(0);
  EXPECT_EQ(rig.pick(rig.request()).endpoints[0].score, 1.3e38F);
}

}  // namespace
}  // namespace pickd::pick::test

// Slowness: how soon it is believed, and what does not move it.
#include "daemon/latency/slowness.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace pickd::latency {
namespace {

TEST(Slowness, IsOneBeforeAnythingIsKnown) {
  EXPECT_DOUBLE_EQ(Slowness::factor(Slowness().log_ratio()), 1);
}

TEST(Slowness, BelievesAnEndpointThatSlowsToHalfWithinAMinute) {
  Slowness slowness;
  double now_s = 0;
  // Two answers a second of 5 s of decoding each: about ten requests run at a time.
  for (; now_s < 600; now_s += .5) slowness.add(5, 5, now_s);
  EXPECT_NEAR(Slowness::factor(slowness.log_ratio()), 1, .01);
  const double changed_s = now_s;
  while (Slowness::factor(slowness.log_ratio()) < 1.5 && now_s < changed_s + 600) {
    slowness.add(10, 5, now_s);
    now_s += .5;
  }
  EXPECT_LT(now_s - changed_s, 60);
}

TEST(Slowness, StaysAtOneUnderSmallDifferences) {
  EXPECT_DOUBLE_EQ(Slowness::factor(.04), 1);
  EXPECT_DOUBLE_EQ(Slowness::factor(-.05), 1);
  // .1 - .0025 / .1
  EXPECT_NEAR(Slowness::factor(.1), std::exp(.075), 1e-12);
}

TEST(Slowness, IsBoundedWhateverItIsTold) {
  Slowness slowness;
  for (int i = 0; i < 1000; ++i) slowness.add(1e9, .1, i);
  EXPECT_LE(Slowness::factor(slowness.log_ratio()), 8);
  Slowness quick;
  for (int i = 0; i < 1000; ++i) quick.add(0, 10, i);
  EXPECT_GE(Slowness::factor(quick.log_ratio()), 1.0 / 8);
  Slowness nonsense;
  nonsense.add(std::nan(""), 1, 1);
  nonsense.add(1, -1, 1);
  nonsense.add(-1, 1, 1);
  EXPECT_EQ(nonsense.samples(), 0U);
}

TEST(Slowness, IsNotMovedFarByOneAbsurdAnswer) {
  Slowness slowness;
  for (int i = 0; i < 100; ++i) slowness.add(.5, .5, i);
  slowness.add(10'000, .5, 100);
  EXPECT_LT(Slowness::factor(slowness.log_ratio()), 1.2);
}

}  // namespace
}  // namespace pickd::latency

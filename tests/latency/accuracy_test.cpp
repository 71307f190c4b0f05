// How right predictions are, and whether the model may be trusted.
#include "daemon/latency/accuracy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "daemon/base/random.hpp"

namespace pickd::latency {
namespace {

double uniform(base::Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

TEST(Accuracy, IsNotReadyBeforeEnoughSamples) {
  LearnerOptions options;
  options.samples_min = 50;
  Accuracy accuracy(options);
  for (int sample = 1; sample < 50; ++sample) {
    accuracy.add(sample % 2 == 0 ? 1.0 : 3.0, sample % 2 == 0 ? 1.01 : 3.01);
    EXPECT_FALSE(accuracy.ready()) << sample;
  }
  accuracy.add(1, 1.01);
  EXPECT_TRUE(accuracy.ready());
}

TEST(Accuracy, IsReadyOnlyWhileTheModelBeatsTheRunningMean) {
  base::Random random(3);
  Accuracy accuracy;
  // Says the same whatever comes, and not even the mean.
  for (int sample = 0; sample < 1000; ++sample) accuracy.add(5, 1 + uniform(random));
  EXPECT_FALSE(accuracy.ready());
  // Then it is right.
  for (int sample = 0; sample < 3000; ++sample) {
    const double measured_s = 1 + uniform(random);
    accuracy.add(measured_s * 1.02, measured_s);
  }
  EXPECT_TRUE(accuracy.ready());
  // Then it breaks.
  for (int sample = 0; sample < 1000; ++sample) accuracy.add(50, 1 + uniform(random));
  EXPECT_FALSE(accuracy.ready());
}

TEST(Accuracy, TracksThePercentileThatIsAskedFor) {
  for (const double percentile : {50.0, 75.0, 90.0, 99.0}) {
    LearnerOptions options;
    options.percentile = percentile;
    Accuracy accuracy(options);
    base::Random random(static_cast<std::uint64_t>(percentile));
    for (int sample = 0; sample < 20'000; ++sample) accuracy.add(1, .5 + uniform(random));
    // Outcomes are spread evenly between half and one and a half of what was predicted.
    EXPECT_NEAR(accuracy.p90_factor(), .5 + percentile / 100, .05) << percentile;
    EXPECT_NEAR(accuracy.coverage(), percentile / 100, .05) << percentile;
  }
}

TEST(Accuracy, LooksBackOnAsManySamplesAsItIsTold) {
  LearnerOptions brief;
  brief.memory_samples = 50;
  Accuracy quick(brief);
  Accuracy slow;
  for (Accuracy* accuracy : {&quick, &slow}) {
    for (int sample = 0; sample < 5000; ++sample) accuracy->add(1.5, 1);
    for (int sample = 0; sample < 150; ++sample) accuracy->add(1, 1);
  }
  EXPECT_LT(quick.mape(), .05);
  EXPECT_GT(slow.mape(), .3);
}

TEST(Accuracy, TakesNoNumberThatIsNone) {
  Accuracy accuracy;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {std::nan(""), infinity, -infinity, 0.0, -1.0}) {
    accuracy.add(wrong, 1);
    accuracy.add(1, wrong);
  }
  EXPECT_EQ(accuracy.samples(), 0U);
  accuracy.add(1, 1e-300);
  accuracy.add(1e300, 1);
  EXPECT_TRUE(std::isfinite(accuracy.mape()));
  EXPECT_TRUE(std::isfinite(accuracy.bias()));
  EXPECT_TRUE(std::isfinite(accuracy.p90_factor()));
}

}  // namespace
}  // namespace pickd::latency

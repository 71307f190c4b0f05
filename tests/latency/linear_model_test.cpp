// The two models against known generators.
#include "daemon/latency/linear_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "daemon/base/random.hpp"
#include "daemon/latency/features.hpp"

namespace pickd::latency {
namespace {

using TtftModel = LinearModel<kTtftFeatures>;

double uniform(base::Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

TtftFeatures random_features(base::Random& random) {
  return {1,
          8 * uniform(random),
          8 * uniform(random),
          2 * uniform(random),
          2 * uniform(random),
          4 * uniform(random),
          3 * uniform(random)};
}

TEST(LinearModel, PredictsByItsPriorBeforeAnySample) {
  const TtftModel model(kTtftPrior);
  // 10,000 uncached tokens, no attention work: 0.01 + 1.
  EXPECT_DOUBLE_EQ(model.predict({1, 0, 0, 1, 0, 0, 0}), 1.01);
}

TEST(LinearModel, FindsTheCoefficientsOfALinearEngine) {
  const TtftFeatures truth = {.02, .8, .3, .9, .4, .05, .1};
  TtftModel model(kTtftPrior);
  base::Random random(7);
  for (int i = 0; i < 4000; ++i) {
    const TtftFeatures x = random_features(random);
    const double y = dot(truth, x) * (1 + .1 * (uniform(random) - .5));
    ASSERT_TRUE(model.add(x, y, 1 / (.05 + model.predict(x))));
  }
  for (int i = 0; i < 100; ++i) {
    const TtftFeatures x = random_features(random);
    EXPECT_NEAR(model.predict(x) / dot(truth, x), 1, .05);
  }
}

TEST(LinearModel, TakesTheScaleFromTheFirstSamplesAndTheRatiosFromThePrior) {
  TtftModel model(kTtftPrior);
  // An engine ten times quicker than the prior; every sample has the same shape.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(model.add({1, 0, 0, 1, 0, 0, 0}, .101, 5));
  // It never saw a queue, and still believes that queued tokens cost what own ones do.
  EXPECT_NEAR(model.predict({1, 1, 0, 0, 0, 0, 0}), .101, .03);
}

TEST(LinearModel, LetsNoCoefficientFallBelowZero) {
  TtftModel model(kTtftPrior);
  base::Random random(3);
  for (int i = 0; i < 1000; ++i) {
    TtftFeatures x = random_features(random);
    // An engine that gets quicker with more decoding: not to be believed.
    const double y = std::max(.001, 3 - .5 * x[5]);
    model.add(x, y, 1);
  }
  for (const double value : model.theta()) EXPECT_GE(value, 0);
}

TEST(LinearModel, FollowsAnEngineThatChanges) {
  TtftModel model(kTtftPrior);
  base::Random random(5);
  const auto teach = [&](double factor, int samples) {
    for (int i = 0; i < samples; ++i) {
      const TtftFeatures x = random_features(random);
      model.add(x, factor * dot(kTtftPrior, x), 1 / (.05 + model.predict(x)));
    }
  };
  teach(1, 2000);
  teach(2, 3000);
  const TtftFeatures x = {1, 1, 1, 1, 1, 0, 0};
  EXPECT_NEAR(model.predict(x) / (2 * dot(kTtftPrior, x)), 1, .05);
}

TEST(LinearModel, RefusesWhatCannotBe) {
  TtftModel model(kTtftPrior);
  const TtftFeatures good = {1, 0, 0, 1, 0, 0, 0};
  const double infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(model.add(good, nan, 1));
  EXPECT_FALSE(model.add(good, infinite, 1));
  EXPECT_FALSE(model.add(good, -1, 1));
  EXPECT_FALSE(model.add(good, 0, 1));
  EXPECT_FALSE(model.add(good, 1, nan));
  EXPECT_FALSE(model.add(good, 1, 0));
  for (std::size_t i = 0; i < kTtftFeatures; ++i) {
    for (const double value : {nan, infinite, -infinite, -1.0, 1e10}) {
      TtftFeatures bad = good;
      bad[i] = value;
      EXPECT_FALSE(model.add(bad, 1, 1));
    }
  }
  EXPECT_EQ(model.samples(), 0U);
  EXPECT_EQ(model.theta(), kTtftPrior);
}

TEST(LinearModel, GoesOnFromItsMemory) {
  TtftModel model(kTtftPrior);
  base::Random random(9);
  for (int i = 0; i < 500; ++i) model.add(random_features(random), 1 + uniform(random), 1);
  TtftModel next(kTtftPrior);
  ASSERT_TRUE(next.restore(model.memory()));
  EXPECT_EQ(next.theta(), model.theta());
  const TtftFeatures x = random_features(random);
  for (int i = 0; i < 8; ++i) {
    model.add(x, 2, 1);
    next.add(x, 2, 1);
  }
  EXPECT_EQ(next.theta(), model.theta());
}

TEST(LinearModel, RefusesAMemoryThatIsDamaged) {
  const TtftModel model(kTtftPrior);
  TtftModel next(kTtftPrior);
  TtftModel::Memory damaged = model.memory();
  damaged.gram[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(next.restore(damaged));
  damaged = model.memory();
  damaged.theta[2] = -1;
  EXPECT_FALSE(next.restore(damaged));
  damaged = model.memory();
  damaged.expected = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(next.restore(damaged));
  EXPECT_EQ(next.theta(), kTtftPrior);
}

}  // namespace
}  // namespace pickd::latency

// What a learner leaves to the next one, and what it takes from it only when it is sound.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "daemon/latency/learner.hpp"

namespace pickd::latency {
namespace {

// Teaches of requests one after another: 50 us a prompt token, 20 ms a token of the answer.
void teach(Learner& learner, std::uint16_t endpoint, int requests, double slowness, double* now_s) {
  for (int at = 0; at < requests; ++at) {
    Picked pick;
    pick.at_s = *now_s;
    pick.flight = 1;
    pick.endpoint = endpoint;
    pick.generation = 5;
    pick.stream = true;
    pick.prompt_tokens = pick.uncached_tokens = 500 + static_cast<std::uint32_t>(at * 97 % 4000);
    pick.kv_tokens = pick.prompt_tokens + 25;
    pick.ttft_s = static_cast<float>(pick.prompt_tokens * 50e-6);
    learner.picked(pick);
    *now_s += pick.prompt_tokens * 50e-6 * slowness;
    learner.first_token(1, *now_s);
    *now_s += 49 * .02 * slowness;
    learner.ended(1, *now_s, {.served = true, .output_tokens = 50, .cached_tokens = 0});
  }
}

TEST(LearnerMemory, IsTheSameInTheNextLearner) {
  Learner before(8, 8);
  double now_s = 1;
  teach(before, 1, 60, 1, &now_s);
  teach(before, 2, 60, 3, &now_s);
  Learner after(8, 8);
  ASSERT_TRUE(after.restore(0, before.memory(0)));
  for (const std::uint16_t id : {1, 2}) {
    const auto known = before.endpoint_memory(id, now_s);
    ASSERT_TRUE(known.has_value());
    EXPECT_EQ(known->generation, 5U);
    after.restore_endpoint(id, 0, known->generation, known->memory, now_s);
  }
  const Coefficients old = before.coefficients(now_s);
  const Coefficients& taken = after.coefficients(now_s);
  EXPECT_EQ(taken.classes[0].ttft, old.classes[0].ttft);
  EXPECT_EQ(taken.classes[0].itl, old.classes[0].itl);
  EXPECT_EQ(taken.classes[0].output_tokens, old.classes[0].output_tokens);
  EXPECT_EQ(taken.classes[0].ttft_ready, old.classes[0].ttft_ready);
  EXPECT_TRUE(taken.classes[0].ttft_ready);
  EXPECT_EQ(after.accuracy(0).ttft.samples(), before.accuracy(0).ttft.samples());
  for (const std::uint32_t id : {1U, 2U})
    EXPECT_NEAR(taken.endpoint(id).slowness, old.endpoint(id).slowness, 1e-3);
  EXPECT_GT(taken.endpoint(2).slowness, 1.3 * taken.endpoint(1).slowness);
}

TEST(LearnerMemory, IsRefusedAsAWholeWhenOneNumberIsNotSound) {
  Learner before(8, 8);
  double now_s = 1;
  teach(before, 1, 60, 1, &now_s);
  const ClassMemory good = before.memory(0);
  constexpr std::size_t kNumbers = sizeof(ClassMemory) / sizeof(double);
  const TtftFeatures prior = Learner(8, 8).coefficients(now_s).classes[0].ttft;
  for (std::size_t at = 0; at < kNumbers; ++at) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1e300}) {
      ClassMemory damaged = good;
      std::memcpy(reinterpret_cast<std::byte*>(&damaged) + at * sizeof(double), &bad, sizeof bad);
      Learner after(8, 8);
      if (after.restore(0, damaged)) {
        // Only where any number will do: it must still predict with numbers.
        for (const double value : after.coefficients(now_s).classes[0].ttft)
          EXPECT_TRUE(std::isfinite(value) && value >= 0) << at;
      } else {
        EXPECT_EQ(after.coefficients(now_s).classes[0].ttft, prior) << at;
      }
    }
    ClassMemory nan = good;
    const double bad = std::nan("");
    std::memcpy(reinterpret_cast<std::byte*>(&nan) + at * sizeof(double), &bad, sizeof bad);
    EXPECT_FALSE(Learner(8, 8).restore(0, nan)) << at;
  }
}

// Each number may be, and all together not: sums of no samples whatever, by which a fit runs away.
TEST(LearnerMemory, BeginsAnewWhereWhatWasRestoredBreaksTheModel) {
  Learner before(8, 8);
  double now_s = 1;
  teach(before, 1, 60, 1, &now_s);
  ClassMemory damaged = before.memory(0);
  for (double& sum : damaged.ttft.gram) sum = 0;
  for (double& sum : damaged.ttft.moment) sum = 1e12;
  Learner after(8, 8);
  ASSERT_TRUE(after.restore(0, damaged));
  EXPECT_TRUE(is_sound(after.coefficients(now_s)));
  for (int at = 0; at < 100; ++at) {
    teach(after, 1, 1, 1, &now_s);
    EXPECT_TRUE(is_sound(after.coefficients(now_s))) << at;
  }
  EXPECT_EQ(after.counts().broken, 1U);
  teach(after, 1, 200, 1, &now_s);
  EXPECT_LT(after.accuracy(0).ttft.mape(), .1) << "it learns again";
  EXPECT_EQ(after.counts().broken, 1U);
}

TEST(Coefficients, AreSoundOnlyIfEveryNumberCanBe) {
  const auto with = [](auto change) {
    Coefficients made = Learner(3, 3).coefficients(1);
    change(made);
    return is_sound(made);
  };
  const double nan = std::nan("");
  EXPECT_TRUE(with([](Coefficients&) {}));
  EXPECT_FALSE(with([nan](Coefficients& of) { of.classes[0].ttft[3] = nan; }));
  EXPECT_FALSE(with([](Coefficients& of) { of.classes[0].ttft[0] = 1e300; }));
  EXPECT_FALSE(with([](Coefficients& of) { of.classes[0].itl[2] = -1; }));
  EXPECT_FALSE(with([nan](Coefficients& of) { of.classes[0].output_tokens = nan; }));
  EXPECT_FALSE(with([](Coefficients& of) { of.endpoints[2].slowness = 0; }));
  EXPECT_FALSE(with([](Coefficients& of) { of.endpoints[1].queued_share = 1.5F; }));
  EXPECT_FALSE(with([nan](Coefficients& of) { of.work_price = nan; }));
  EXPECT_FALSE(with([](Coefficients& of) { of.classes.clear(); }));
}

TEST(LearnerMemory, DoesNotOverrideAnEndpointThatWasSeen) {
  Learner learner(8, 8);
  double now_s = 1;
  teach(learner, 1, 60, 1, &now_s);
  learner.restore_endpoint(1, 0, 4, {2, 100, 1}, now_s);
  EXPECT_EQ(learner.endpoint_memory(1, now_s)->generation, 5U);
}

// A report that comes ten seconds late tells of its way.
TEST(Learner, LeavesOutFewLateReportsAndBelievesMany) {
  Learner learner(8, 8);
  double now_s = 1;
  teach(learner, 1, 100, 1, &now_s);
  const TtftFeatures calm = learner.coefficients(now_s).classes[0].ttft;
  const auto late = [&](int count) {
    for (int at = 0; at < count; ++at) teach(learner, 1, 1, 200, &now_s);
  };
  const std::uint64_t itl_samples = learner.counts().itl_samples;
  late(3);
  EXPECT_EQ(learner.counts().late, 3U);
  EXPECT_EQ(learner.counts().itl_samples, itl_samples) << "what ran since is not what ran then";
  EXPECT_EQ(learner.coefficients(now_s).classes[0].ttft, calm);
  late(60);
  EXPECT_LT(learner.counts().late, 30U) << "the engine is that slow";
  EXPECT_NE(learner.coefficients(now_s).classes[0].ttft, calm);
}

}  // namespace
}  // namespace pickd::latency

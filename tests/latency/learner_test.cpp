// The learner against an engine whose rates are known.
#include "daemon/latency/learner.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/base/random.hpp"
#include "daemon/latency/cost.hpp"

namespace pickd::latency {
namespace {

double uniform(base::Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

// Requests one after another: 50 us a prompt token, 20 ms a decode step.
class OneAtATime {
 public:
  explicit OneAtATime(Learner& learner, double noise = 1) : learner_(learner), noise_(noise) {}

  void serve(std::uint16_t endpoint, std::uint32_t prompt, std::uint32_t output, double slowness,
             bool stream = true) {
    Picked pick;
    pick.at_s = now_s_;
    pick.flight = 1;
    pick.endpoint = endpoint;
    pick.stream = stream;
    pick.prompt_tokens = prompt;
    pick.uncached_tokens = prompt;
    pick.kv_tokens = prompt + output / 2;
    const Coefficients& known = learner_.coefficients(now_s_);
    const EndpointCoefficients& of = known.endpoint(endpoint);
    pick.slowness = of.slowness;
    const Prediction predicted = predict(known.class_of(of.class_id), of, 0, {}, prompt, prompt);
    pick.ttft_s = static_cast<float>(predicted.ttft_s);
    pick.itl_s = static_cast<float>(predicted.itl_s);
    learner_.picked(pick);
    now_s_ += prompt * 50e-6 * slowness;
    if (stream) learner_.first_token(1, now_s_);
    now_s_ += (output - 1) * .02 * slowness;
    learner_.ended(1, now_s_,
                   {.served = true, .output_tokens = output, .cached_tokens = 0, .noise = noise_});
    now_s_ += .01;
  }
  double now_s() const { return now_s_; }

 private:
  Learner& learner_;
  double noise_;
  double now_s_ = 1;
};

double predicted_ttft(Learner& learner, std::uint32_t endpoint, double prompt, double now_s) {
  const Coefficients& known = learner.coefficients(now_s);
  const EndpointCoefficients& of = known.endpoint(endpoint);
  return predict(known.class_of(of.class_id), of, 0, {}, prompt, prompt).ttft_s;
}

TEST(Learner, LearnsTheRatesOfAnEngine) {
  Learner learner(8, 8);
  OneAtATime engine(learner);
  base::Random random(1);
  for (int i = 0; i < 500; ++i)
    engine.serve(1, 200 + static_cast<std::uint32_t>(random.next() % 8000), 50, 1);
  EXPECT_NEAR(predicted_ttft(learner, 1, 4000, engine.now_s()), .2, .01);
  EXPECT_LT(learner.accuracy(0).ttft.mape(), .1);
  EXPECT_LT(learner.accuracy(0).itl_given.mape(), .1);
  EXPECT_TRUE(learner.accuracy(0).ttft.ready());
  EXPECT_EQ(learner.counts().refused, 0U);
}

TEST(Learner, TellsASlowEndpointFromItsClass) {
  Learner learner(8, 8);
  OneAtATime engine(learner);
  base::Random random(2);
  for (int i = 0; i < 600; ++i) {
    const auto prompt = 200 + static_cast<std::uint32_t>(random.next() % 8000);
    engine.serve(static_cast<std::uint16_t>(1 + i % 4), prompt, 100, i % 4 == 0 ? 2 : 1);
  }
  const Coefficients& known = learner.coefficients(engine.now_s());
  EXPECT_GT(known.endpoint(1).slowness / known.endpoint(2).slowness, 1.6);
  EXPECT_NEAR(known.endpoint(2).slowness / known.endpoint(3).slowness, 1, .1);
}

// The class believes in a steep price of a token, and one endpoint gets short prompts only.
TEST(Learner, ComparesNobodyWithAClassThatItDoesNotKnowYet) {
  Learner learner(8, 8);
  OneAtATime engine(learner);
  for (int i = 0; i < 40; ++i) {
    const bool is_short = i % 2 == 0;
    engine.serve(is_short ? 1 : 2, is_short ? 100 : 20'000, 20, 1);
    const Coefficients& known = learner.coefficients(engine.now_s());
    ASSERT_FLOAT_EQ(known.endpoint(1).slowness, 1) << "after " << i + 1;
    ASSERT_FLOAT_EQ(known.endpoint(2).slowness, 1) << "after " << i + 1;
  }
}

// Field case 97: an answer that comes as a whole has its first token at its end.
TEST(Learner, LearnsNothingOfTtftAndItlFromAnswersThatAreNotStreamed) {
  Learner learner(8, 8);
  OneAtATime engine(learner);
  for (int i = 0; i < 50; ++i) engine.serve(1, 1000, 100, 1, false);
  EXPECT_EQ(learner.counts().ttft_samples, 0U);
  EXPECT_EQ(learner.counts().itl_samples, 0U);
  // But how long answers are is told all the same.
  EXPECT_LT(learner.coefficients(engine.now_s()).classes[0].output_tokens, 150);
}

TEST(Learner, LearnsWhatIsOffAndJudgesItselfByWhatWas) {
  Learner exact(8, 8);
  Learner noisy(8, 8);
  for (Learner* learner : {&exact, &noisy}) {
    OneAtATime engine(*learner, learner == &noisy ? 1.5 : 1);
    for (int i = 0; i < 400; ++i) engine.serve(1, 1000 + static_cast<std::uint32_t>(i), 50, 1);
  }
  EXPECT_LT(exact.accuracy(0).itl_given.mape(), .05);
  EXPECT_NEAR(noisy.accuracy(0).itl_given.mape(), .5, .1);
}

TEST(Learner, ForgetsAnEndpointWhoseGenerationIsGone) {
  Learner learner(8, 8);
  OneAtATime engine(learner);
  for (int i = 0; i < 400; ++i)
    engine.serve(static_cast<std::uint16_t>(1 + i % 2), 2000, 100, i % 2 == 0 ? 3 : 1);
  ASSERT_GT(learner.coefficients(engine.now_s()).endpoint(1).slowness, 1.3);
  Picked pick;
  pick.at_s = engine.now_s();
  pick.flight = 2;
  pick.endpoint = 1;
  pick.generation = 9;  // another engine at this id
  learner.picked(pick);
  EXPECT_FLOAT_EQ(learner.coefficients(engine.now_s()).endpoint(1).slowness, 1);
}

TEST(Learner, RefusesReportsThatCannotBeAndCountsThem) {
  Learner learner(8, 8);
  EXPECT_EQ(learner.first_token(1, 5), Refusal::kUnknownFlight);
  EXPECT_EQ(learner.ended(1, 5, {}), Refusal::kUnknownFlight);
  EXPECT_EQ(learner.ended(1'000'000, 5, {}), Refusal::kUnknownFlight);
  Picked pick;
  pick.at_s = 10;
  pick.flight = 1;
  pick.endpoint = 1;
  pick.stream = true;
  pick.prompt_tokens = 100;
  pick.uncached_tokens = 100;
  learner.picked(pick);
  learner.first_token(1, 11);
  EXPECT_EQ(learner.first_token(1, 12), Refusal::kOutOfOrder) << "a second first token";
  EXPECT_EQ(learner.ended(1, 10.5, {.served = true, .output_tokens = 50}), Refusal::kImpossible)
      << "an end before the first token";
  EXPECT_EQ(learner.ended(1, 13, {}), Refusal::kUnknownFlight) << "ended twice";
  learner.picked(pick);
  learner.first_token(1, 9);  // before the pick
  EXPECT_EQ(learner.ended(1, 12, {.served = true, .output_tokens = 50}), Refusal::kImpossible);
  learner.picked(pick);
  learner.first_token(1, 11);
  EXPECT_EQ(learner.ended(1, 12, {.served = true, .output_tokens = 50, .cached_tokens = 1'000'000}),
            Refusal::kImpossible)
      << "more cached tokens than the prompt has";
  EXPECT_EQ(learner.counts().ttft_samples, 0U);
  EXPECT_EQ(learner.counts().refused, 8U);
}

TEST(Learner, NeverPublishesWhatIsNoNumber) {
  Learner learner(16, 64);
  base::Random random(11);
  double now_s = 1;
  for (int i = 0; i < 20'000; ++i) {
    now_s += uniform(random) * .1 - .02;  // it may go back a little
    const auto flight = static_cast<std::uint32_t>(random.next() % 80);
    switch (random.next() % 3) {
      case 0: {
        Picked pick;
        pick.at_s = now_s;
        pick.flight = flight;
        pick.endpoint = static_cast<std::uint16_t>(random.next() % 20);
        pick.class_id = static_cast<std::uint16_t>(random.next() % 70);
        pick.stream = random.next() % 2 == 0;
        pick.prompt_tokens = static_cast<std::uint32_t>(random.next());
        pick.uncached_tokens = static_cast<std::uint32_t>(random.next());
        pick.kv_tokens = static_cast<std::uint32_t>(random.next());
        pick.queue.tokens = static_cast<float>(uniform(random) * 1e12);
        pick.queue.work =
            random.next() % 7 == 0 ? std::nanf("") : static_cast<float>(uniform(random) * 1e15);
        pick.progress_s = static_cast<float>(uniform(random) * 1e6);
        pick.slowness = static_cast<float>(uniform(random) * 8);
        pick.ttft_s = static_cast<float>(uniform(random));
        pick.itl_s = static_cast<float>(uniform(random));
        learner.picked(pick);
        break;
      }
      case 1: learner.first_token(flight, now_s); break;
      default:
        learner.ended(flight, now_s,
                      {.served = random.next() % 4 != 0,
                       .output_tokens = static_cast<std::uint32_t>(random.next()),
                       .cached_tokens = static_cast<std::uint32_t>(random.next() % 5000)});
    }
    if (i % 500 != 0) continue;
    const Coefficients& known = learner.coefficients(now_s);
    ASSERT_TRUE(std::isfinite(known.work_price));
    for (const ClassCoefficients& of : known.classes) {
      for (const double value : of.ttft) ASSERT_TRUE(std::isfinite(value) && value >= 0);
      for (const double value : of.itl) ASSERT_TRUE(std::isfinite(value) && value >= 0);
      ASSERT_TRUE(std::isfinite(of.output_tokens));
    }
    for (const EndpointCoefficients& of : known.endpoints) {
      ASSERT_TRUE(of.slowness >= 1.0 / 8 && of.slowness <= 8);
      ASSERT_TRUE(of.queued_share >= 0 && of.queued_share <= 1);
    }
  }
}

}  // namespace
}  // namespace pickd::latency

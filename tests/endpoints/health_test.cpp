// Health of one endpoint: what failures make of it, and how it comes back.
#include "daemon/endpoints/health.hpp"

#include <gtest/gtest.h>

#include "daemon/base/random.hpp"

namespace pickd::endpoints {
namespace {

using State = abi::EndpointState;

Health ready_one(const HealthRules& rules = {}) {
  Health health(rules);
  health.answered(1);
  return health;
}

TEST(Health, JoinsAsStartingAndIsReadyWithTheFirstAnswer) {
  Health health;
  EXPECT_EQ(health.state(10), State::kStarting);
  for (int at = 0; at < 5; ++at) health.not_answered();
  EXPECT_EQ(health.state(10), State::kStarting) << "its model may load for long";
  health.answered(11);
  EXPECT_EQ(health.state(11), State::kReady);
}

TEST(Health, JoinsAsReadyWhereNobodyScrapes) {
  HealthRules rules;
  rules.scraped = false;
  EXPECT_EQ(Health(rules).state(10), State::kReady);
  EXPECT_EQ(Health(rules, State::kDown).state(10), State::kReady);
}

TEST(Health, GoesOnFromTheWordOfTheDaemonBefore) {
  for (const State state : {State::kReady, State::kSuspect, State::kDown, State::kStarting})
    EXPECT_EQ(Health({}, state).state(10), state);
}

TEST(Health, OneSilentScrapeMakesSuspectThreeMakeDownAndAnAnswerEndsIt) {
  Health health = ready_one();
  health.not_answered();
  EXPECT_EQ(health.state(2), State::kSuspect);
  health.not_answered();
  EXPECT_EQ(health.state(2), State::kSuspect);
  health.not_answered();
  EXPECT_EQ(health.state(2), State::kDown);
  EXPECT_EQ(health.state(1'000'000), State::kDown) << "time alone does not bring it back";
  health.answered(30);
  EXPECT_EQ(health.state(30), State::kReady);
}

TEST(Health, OneFailedRequestMakesSuspectAndThreeInARowMakeDown) {
  Health health = ready_one();
  health.served(1, true, 5);
  EXPECT_EQ(health.state(5), State::kSuspect);
  health.served(3, true, 6);
  EXPECT_EQ(health.state(6), State::kDown);
  health.served(0, false, 7);
  EXPECT_EQ(health.state(7), State::kReady) << "one that ended well ends the row";
}

TEST(Health, AFailedOneIsTriedAgainAfterAPauseAndOnlyIfItAnswers) {
  Health health = ready_one();
  health.served(1, true, 100);
  EXPECT_EQ(health.state(119), State::kSuspect);
  EXPECT_EQ(health.state(120), State::kSuspect) << "no scrape was answered since";
  health.answered(110);
  EXPECT_EQ(health.state(119), State::kSuspect);
  EXPECT_EQ(health.state(120), State::kReady);
}

TEST(Health, APauseDoublesWithEachTryThatFails) {
  HealthRules rules;
  rules.scraped = false;
  Health health(rules);
  std::uint64_t tick = 1000;
  for (std::uint32_t failures = 1, pause = 20; failures < 12; ++failures) {
    health.served(failures, true, tick);
    EXPECT_NE(health.state(tick + pause - 1), State::kReady) << failures;
    EXPECT_EQ(health.state(tick + pause), State::kReady) << failures;
    tick += pause;
    pause = std::min(pause * 2, 600U);
  }
  health.served(0, false, tick);
  health.served(1, true, tick);
  EXPECT_EQ(health.state(tick + 20), State::kReady) << "and begins anew once it served";
}

TEST(Health, RequestsThatFailTogetherAreOneFailedTry) {
  HealthRules rules;
  rules.scraped = false;
  Health health(rules);
  for (std::uint32_t failures = 1; failures <= 50; ++failures)
    health.served(failures, true, 100 + failures / 10);
  EXPECT_EQ(health.state(105), State::kDown);
  EXPECT_EQ(health.state(126), State::kReady);
}

TEST(Health, AnAnsweredScrapeIsNoProofThatItServes) {
  Health health = ready_one();
  for (std::uint64_t tick = 100; tick < 103; ++tick) {
    health.served(static_cast<std::uint32_t>(tick - 99), true, tick);
    health.answered(tick);
  }
  EXPECT_EQ(health.state(103), State::kDown);
}

TEST(Health, IsAskedAtOnceAfterAFailureAndEverLessOftenWhileDown) {
  Health health = ready_one();
  EXPECT_EQ(health.probe_tick(100, 20), 120U);
  health.served(1, true, 105);
  EXPECT_EQ(health.probe_tick(100, 20), 101U);
  EXPECT_EQ(health.probe_tick(106, 20), 126U) << "asked already";
  health.not_answered();
  EXPECT_EQ(health.probe_tick(100, 100), 120U);
  health.not_answered();
  std::uint64_t before = 0;
  for (int at = 0; at < 12; ++at) {
    health.not_answered();
    const std::uint64_t pause = health.probe_tick(1000, 10) - 1000;
    EXPECT_GE(pause, before);
    EXPECT_LE(pause, 600U);
    before = pause;
  }
  EXPECT_EQ(before, 600U);
  EXPECT_EQ(health.probe_tick(1000, 900), 1900U) << "never more often than usual";
}

// Whatever happens in whatever order: the rules hold at every step, told by a plain model.
TEST(Health, HoldsItsRulesWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    base::Random random(seed);
    HealthRules rules;
    rules.scraped = random.below(2) == 0;
    Health health(rules);
    std::uint64_t tick = 1;
    std::uint64_t failed = 0;
    std::uint64_t answered = 0;
    std::uint32_t silences = 0;
    std::uint32_t in_a_row = 0;
    for (int step = 0; step < 300; ++step) {
      tick += random.below(30);
      switch (random.below(5)) {
        case 0:
          health.answered(tick);
          answered = tick;
          silences = 0;
          break;
        case 1:
          health.not_answered();
          ++silences;
          break;
        case 2:
          health.served(++in_a_row, true, tick);
          failed = tick;
          break;
        case 3: health.served(in_a_row, false, tick); break;
        default: health.served(in_a_row = 0, false, tick); break;
      }
      const State state = health.state(tick);
      const bool known = !rules.scraped || answered != 0;
      ASSERT_EQ(state == State::kStarting, !known);
      if (!known) continue;
      if (silences == 0 && in_a_row == 0) {
        ASSERT_EQ(state, State::kReady) << seed;
      }
      if (silences != 0) {
        ASSERT_NE(state, State::kReady) << seed;
      }
      if (silences >= 3) {
        ASSERT_EQ(state, State::kDown) << seed;
      }
      if (in_a_row != 0 && tick - failed < rules.pause_ticks_min) {
        ASSERT_NE(state, State::kReady) << seed;
      }
      if (in_a_row != 0 && rules.scraped && answered <= failed) {
        ASSERT_NE(state, State::kReady) << seed;
      }
      if (silences < 3 && in_a_row < 3) {
        ASSERT_NE(state, State::kDown) << seed;
      }
      // It always comes back once it answers and the longest pause is over.
      Health later = health;
      later.answered(tick + 1);
      ASSERT_EQ(later.state(tick + 1 + rules.pause_ticks_max), State::kReady) << seed;
    }
  }
}

}  // namespace
}  // namespace pickd::endpoints

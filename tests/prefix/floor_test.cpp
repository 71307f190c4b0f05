// The floor: nothing that was stamped for a generation that is gone is ever returned to a reader
// that sees the present one, whatever the order of pick, reset, late stamp, sweep and clock.
// Enumerated.
#include <gtest/gtest.h>

#include <array>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

constexpr std::uint16_t kId = 1;

// Small programs whose steps interleave. Each step is one access to shared state.
struct Pick {
  std::uint64_t tick = 0;
  abi::LifeWord seen;
  int step = 0;
};

class World {
 public:
  static constexpr int kPickSteps = 3;
  static constexpr int kResetSteps = 3;

  explicit World(abi::Tier tier) : tier_(tier) {}

  // Actors: 0 and 1 are picks (or event writers), 2 resets, 3 is the clock, 4 the maintenance.
  static constexpr std::array<int, 5> kSteps{kPickSteps, kPickSteps, kResetSteps, 2, 2};

  void step(int actor) {
    if (actor < 2)
      step_pick(picks_[static_cast<std::size_t>(actor)], static_cast<std::uint64_t>(actor));
    else if (actor == 2)
      step_reset();
    else if (actor == 3)
      t_.now += 1;
    else
      step_maintenance();
  }

  // What a reader that sees the present generation may be told: only what was stamped for it.
  void check(const std::vector<int>& order) {
    for (std::uint64_t prompt = 0; prompt < 2; ++prompt) {
      for (const bool exact : {false, true}) {
        const std::uint32_t blocks = t_.match_one(keys(prompt), kId, exact);
        if (blocks == 0) continue;
        const abi::LifeWord stamped_for = stamped_for_[prompt];
        ASSERT_EQ(stamped_for.generation(), t_.life(kId).generation())
            << testing::PrintToString(order);
      }
    }
  }

  // Afterwards: what the present generation's own pick stamped is there.
  void check_end(const std::vector<int>& order) {
    t_.advance();
    for (std::uint64_t prompt = 0; prompt < 2; ++prompt) {
      const bool own = stamped_for_[prompt].generation() == t_.life(kId).generation() &&
                       picks_[prompt].seen.floor() == t_.life(kId).floor();
      if (own) {
        ASSERT_EQ(t_.match_one(keys(prompt), kId), 4U) << testing::PrintToString(order);
      }
    }
  }

 private:
  static std::vector<std::uint64_t> keys(std::uint64_t prompt) { return chain(100 + prompt, 4); }

  void step_pick(Pick& pick, std::uint64_t prompt) {
    switch (pick.step++) {
      case 0: pick.tick = t_.now; break;        // the tick first,
      case 1: pick.seen = t_.life(kId); break;  // then the candidates
      default:
        t_.table.stamp(keys(prompt), kId, stamp_at(pick.tick, pick.seen), tier_,
                       static_cast<std::uint32_t>(pick.tick));
        stamped_for_[prompt] = pick.seen;
    }
  }

  // The tick is looked at again after the store: had it moved in between, a pick of the old
  // generation might have read the new tick, and the floor must lie above that one.
  void step_reset() {
    if (reset_step_++ == 1) {
      store_floor();
      return;
    }
    if (reset_step_ == 1)
      reset_tick_ = t_.now;
    else if (t_.now != reset_tick_) {
      reset_tick_ = t_.now;
      store_floor();
    }
  }
  void store_floor() {
    const std::uint32_t floor = static_cast<std::uint32_t>(reset_tick_ + 1) & abi::kStampMask;
    const std::uint32_t generation = first_generation_ + 1;
    for (abi::Word* word : {&t_.record(kId).confirmed_life, &t_.record(kId).life}) {
      word->store(abi::LifeWord::make(generation, floor, floor).bits);
    }
  }

  void step_maintenance() {
    t_.advance();
    t_.sweep_all();
  }

  TestTable t_{{.lines = 8, .endpoint_ids = 2, .tick = 5000, .ttl_ticks = 50}};
  abi::Tier tier_;
  std::uint32_t first_generation_ = t_.life(kId).generation();
  std::array<Pick, 2> picks_{};
  std::array<abi::LifeWord, 2> stamped_for_{};
  int reset_step_ = 0;
  std::uint64_t reset_tick_ = 0;
};

std::uint64_t run_all(abi::Tier tier, std::array<int, 5> left, std::vector<int>& order) {
  bool done = true;
  std::uint64_t count = 0;
  for (int actor = 0; actor < 5; ++actor) {
    if (left[static_cast<std::size_t>(actor)] == 0) continue;
    done = false;
    --left[static_cast<std::size_t>(actor)];
    order.push_back(actor);
    count += run_all(tier, left, order);
    order.pop_back();
    ++left[static_cast<std::size_t>(actor)];
    if (testing::Test::HasFatalFailure()) return count;
  }
  if (!done) return count;
  World world(tier);
  bool reset_stored = false;
  int resets = 0;
  for (const int actor : order) {
    world.step(actor);
    resets += actor == 2;
    reset_stored = resets == World::kResetSteps;
    // Between its two stores a reset is not over: the endpoint may be picked only after it.
    if (reset_stored) world.check(order);
    if (testing::Test::HasFatalFailure()) return 1;
  }
  world.check_end(order);
  return 1;
}

TEST(Floor, HidesTheOldGenerationInEveryInterleavingOfTwoPicksAndAReset) {
  for (const abi::Tier tier : {abi::Tier::kAssumed, abi::Tier::kGpu}) {
    std::vector<int> order;
    std::array<int, 5> steps = World::kSteps;
    steps[4] = 0;
    EXPECT_EQ(run_all(tier, steps, order), 92'400U);  // 11! / (3! 3! 3! 2!)
  }
}

TEST(Floor, HidesTheOldGenerationWhileTheMaintenanceRuns) {
  std::vector<int> order;
  std::array<int, 5> steps = World::kSteps;
  steps[1] = 0;
  EXPECT_EQ(run_all(abi::Tier::kAssumed, steps, order), 25'200U);  // 10! / (3! 3! 2! 2!)
}

TEST(Floor, WinsAgainstATickThatStandsStill) {
  TestTable t({});
  const auto keys = chain(1, 10);
  const std::uint32_t old_stamp = stamp_at(t.now, t.life(3));
  t.stamp(keys, 3);
  t.reset(3);  // within the same tick
  EXPECT_EQ(t.match_one(keys, 3), 0U);
  t.table.stamp(keys, 3, old_stamp, abi::Tier::kAssumed, t.stamp_now());
  EXPECT_EQ(t.match_one(keys, 3), 0U);
  t.stamp(keys, 3);  // by a pick that saw the new floor, one tick ahead of the clock
  EXPECT_EQ(t.match_one(keys, 3), 10U);
}

TEST(Floor, RisesWithEveryResetOfOneTick) {
  TestTable t({});
  const auto keys = chain(1, 10);
  for (int i = 0; i < 200; ++i) {
    t.stamp(keys, 3);
    ASSERT_EQ(t.match_one(keys, 3), 10U);
    t.reset(3);
    ASSERT_EQ(t.match_one(keys, 3), 0U);
  }
}

TEST(Floor, KeepsAnEventOfTheOldGenerationFromConfirmingTheNew) {
  TestTable t({.ttl_ticks = 100});
  const auto keys = chain(1, 10);
  const std::uint32_t old_stamp = stamp_at(t.now, t.life(3));
  t.now += 5;
  t.reset(3);
  t.now += 5;
  t.stamp(keys, 3);
  t.table.stamp(keys, 3, old_stamp, abi::Tier::kGpu, t.stamp_now());
  t.advance_to(t.now + 200);
  EXPECT_EQ(t.match_one(keys, 3), 0U) << "assumed words end with the TTL";
}

}  // namespace
}  // namespace pickd::prefix::test

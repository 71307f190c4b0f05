// The spin budget: shrinks to nothing while spinning fails, and comes back when it pays.
#include "abi/spin_budget.hpp"

#include <gtest/gtest.h>

namespace pickd::abi {
namespace {

constexpr std::uint64_t kCapNs = 50'000;

// How many of so many waits spin, and for the whole cap, when what is waited for never comes.
struct Spins {
  int any = 0;
  int whole = 0;
};
Spins fail(SpinBudget& budget, int waits) {
  Spins spins;
  for (int turn = 0; turn < waits; ++turn) {
    budget.failed();
    spins.any += budget.ns() != 0 ? 1 : 0;
    spins.whole += budget.ns() == kCapNs ? 1 : 0;
  }
  return spins;
}

TEST(SpinBudget, NeverSpinsWithoutACap) {
  SpinBudget budget(0);
  budget.paid();
  for (int turn = 0; turn < 10'000; ++turn) {
    budget.failed();
    EXPECT_EQ(budget.ns(), 0U);
  }
}

TEST(SpinBudget, BeginsAtItsCapAndStaysThereWhileSpinningPays) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 1000; ++turn) {
    budget.paid();
    EXPECT_EQ(budget.ns(), kCapNs);
  }
}

TEST(SpinBudget, ShrinksByHalvesToNothingWhileSpinningFails) {
  SpinBudget budget(kCapNs);
  budget.failed();
  EXPECT_EQ(budget.ns(), kCapNs / 2);
  fail(budget, 10);
  EXPECT_EQ(budget.ns(), 0U);
}

TEST(SpinBudget, TriesTheWholeCapAgainNowAndThen) {
  SpinBudget budget(kCapNs);
  const Spins first = fail(budget, 1000);
  EXPECT_GT(first.whole, 1);
  const Spins later = fail(budget, 100'000);
  EXPECT_GT(later.whole, 10);
  EXPECT_LT(later.any, 100'000 / 100) << "too few to be what a p99 shows";
}

TEST(SpinBudget, TriesMoreSeldomTheLongerItFails) {
  SpinBudget budget(kCapNs);
  const Spins first = fail(budget, 2000);
  const Spins later = fail(budget, 2000);
  EXPECT_GT(first.whole, later.whole);
}

TEST(SpinBudget, GrowsBackWhileSpinsPay) {
  SpinBudget budget(kCapNs);
  fail(budget, 3);
  for (int turn = 0; turn < 3; ++turn) budget.paid();
  EXPECT_GE(budget.ns(), kCapNs - 8);
}

TEST(SpinBudget, TriesSoonAgainAfterSpinsHavePaidForLong) {
  SpinBudget trusting(kCapNs);
  SpinBudget doubting(kCapNs);
  for (SpinBudget* budget : {&trusting, &doubting}) {
    fail(*budget, 20'000);
    while (budget->ns() == 0) budget->failed();
  }
  for (int turn = 0; turn < 1000; ++turn) trusting.paid();
  doubting.paid();
  EXPECT_GT(fail(trusting, 500).whole, 0);
  EXPECT_EQ(fail(doubting, 500).whole, 0);
}

TEST(SpinBudget, StopsForLongWhenItLostItsCore) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 1000; ++turn) budget.paid();
  budget.preempted();
  EXPECT_EQ(budget.ns(), 0U);
  EXPECT_EQ(fail(budget, 4000).any, 0);
  EXPECT_EQ(fail(budget, 200).whole, 1) << "but not for ever";
}

}  // namespace
}  // namespace pickd::abi

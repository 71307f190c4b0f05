// The spin budget: shrinks to nothing while spinning fails, and comes back when it pays.
#include "abi/spin_budget.hpp"

#include <gtest/gtest.h>

namespace pickd::abi {
namespace {

constexpr std::uint64_t kCapNs = 50'000;

TEST(SpinBudget, NeverSpinsWithoutACap) {
  SpinBudget budget(0);
  budget.paid();
  for (int turn = 0; turn < 5000; ++turn) {
    budget.failed();
    EXPECT_EQ(budget.ns(), 0U);
  }
}

TEST(SpinBudget, BeginsAtItsCapAndStaysThereWhileSpinningPays) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 10; ++turn) budget.paid();
  EXPECT_EQ(budget.ns(), kCapNs);
}

TEST(SpinBudget, ShrinksByHalvesToNothingWhileSpinningFails) {
  SpinBudget budget(kCapNs);
  budget.failed();
  EXPECT_EQ(budget.ns(), kCapNs / 2);
  for (int turn = 0; turn < 10; ++turn) budget.failed();
  EXPECT_EQ(budget.ns(), 0U);
}

TEST(SpinBudget, TriesTheWholeCapAgainNowAndThen) {
  SpinBudget budget(kCapNs);
  int spins = 0;
  int trials = 0;
  constexpr int kWaits = 100'000;
  for (int turn = 0; turn < kWaits; ++turn) {
    budget.failed();
    spins += budget.ns() != 0 ? 1 : 0;
    trials += budget.ns() == kCapNs ? 1 : 0;
  }
  EXPECT_GT(trials, 0);
  EXPECT_LT(spins, kWaits / 100);
}

TEST(SpinBudget, GrowsBackWhileSpinsPay) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 3; ++turn) budget.failed();
  for (int turn = 0; turn < 3; ++turn) budget.paid();
  EXPECT_GE(budget.ns(), kCapNs - 8);
}

}  // namespace
}  // namespace pickd::abi

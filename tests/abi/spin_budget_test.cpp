// The spin budget: shrinks while spinning fails, comes back when it would have paid.
#include "abi/spin_budget.hpp"

#include <gtest/gtest.h>

namespace pickd::abi {
namespace {

constexpr std::uint64_t kCapNs = 50'000;
constexpr std::uint64_t kLongNs = 5'000'000;

TEST(SpinBudget, NeverSpinsWithoutACap) {
  SpinBudget budget(0);
  budget.paid();
  budget.failed(0);
  EXPECT_EQ(budget.ns(), 0U);
}

TEST(SpinBudget, BeginsAtItsCapAndStaysThereWhileSpinningPays) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 10; ++turn) budget.paid();
  EXPECT_EQ(budget.ns(), kCapNs);
}

TEST(SpinBudget, ShrinksByHalvesWhileSpinningFailsButNotToNothing) {
  SpinBudget budget(kCapNs);
  budget.failed(kLongNs);
  EXPECT_EQ(budget.ns(), kCapNs / 2);
  for (int turn = 0; turn < 100; ++turn) budget.failed(kLongNs);
  EXPECT_GT(budget.ns(), 0U);
  EXPECT_LE(budget.ns(), kCapNs / 16);
}

TEST(SpinBudget, ComesBackWhenSleepsAreShorterThanTheCap) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 100; ++turn) budget.failed(kLongNs);
  for (int turn = 0; turn < 10; ++turn) budget.failed(kCapNs);
  EXPECT_EQ(budget.ns(), kCapNs);
}

TEST(SpinBudget, GrowsWhileSpinsPay) {
  SpinBudget budget(kCapNs);
  for (int turn = 0; turn < 100; ++turn) budget.failed(kLongNs);
  const std::uint64_t least = budget.ns();
  budget.paid();
  EXPECT_GT(budget.ns(), least);
  for (int turn = 0; turn < 100; ++turn) budget.paid();
  EXPECT_EQ(budget.ns(), kCapNs);
}

}  // namespace
}  // namespace pickd::abi

// Allowances: so many at once, then one a pause.
#include "daemon/base/allowance.hpp"

#include <gtest/gtest.h>

namespace pickd::base {
namespace {

int taken(Allowance& allowance, std::uint64_t now, int tries) {
  int taken = 0;
  for (int at = 0; at < tries; ++at) taken += allowance.take(now) ? 1 : 0;
  return taken;
}

TEST(Allowance, IsSoManyAtOnceAndOneMoreForEachPause) {
  Allowance allowance(3, 100);
  EXPECT_EQ(taken(allowance, 5000, 10), 3);
  EXPECT_EQ(taken(allowance, 5099, 10), 0);
  EXPECT_EQ(taken(allowance, 5100, 10), 1);
  EXPECT_EQ(taken(allowance, 5199, 10), 0);
  EXPECT_EQ(taken(allowance, 5350, 10), 2);
  EXPECT_EQ(taken(allowance, 5399, 10), 0) << "half a pause is kept, not given";
  EXPECT_EQ(taken(allowance, 5400, 10), 1);
}

TEST(Allowance, IsNeverMoreThanAtFirst) {
  Allowance allowance(2, 10);
  EXPECT_EQ(taken(allowance, 0, 1), 1);
  EXPECT_EQ(taken(allowance, 1'000'000, 10), 2);
}

}  // namespace
}  // namespace pickd::base

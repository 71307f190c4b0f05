// TickClock against CLOCK_MONOTONIC, on the machine that runs the test.
#include "libclient/tick_clock.hpp"

#include <gtest/gtest.h>

namespace pickd::client {
namespace {

void pass_ns(std::uint64_t ns) {
  const std::uint64_t from_ns = monotonic_ns();
  while (monotonic_ns() - from_ns < ns) {
  }
}

// A span by `clock` within one by CLOCK_MONOTONIC and around another.
void expect_truth(const TickClock& clock) {
  const std::uint64_t outer_from_ns = monotonic_ns();
  const std::uint64_t from = clock.now();
  const std::uint64_t inner_from_ns = monotonic_ns();
  pass_ns(2'000'000);
  const std::uint64_t inner_ns = monotonic_ns() - inner_from_ns;
  const std::uint64_t to = clock.now();
  const std::uint64_t outer_ns = monotonic_ns() - outer_from_ns;
  const std::uint64_t ns = clock.ns_between(from, to);
  // The pace was measured over a span a tenth as long as this one, by looks some tens of
  // nanoseconds wide.
  EXPECT_GE(ns, inner_ns - inner_ns / 50);
  EXPECT_LE(ns, outer_ns + outer_ns / 50);
}

TEST(TickClock, AgreesWithTheMonotonicClock) {
  TickClock clock;
  clock.begin();
  pass_ns(200'000);
  clock.calibrate();
  expect_truth(clock);
}

TEST(TickClock, IsTheMonotonicClockUntilItIsCalibrated) {
  const TickClock clock;
  const std::uint64_t before_ns = monotonic_ns();
  const std::uint64_t now_ns = clock.now();
  EXPECT_GE(now_ns, before_ns);
  EXPECT_LE(now_ns, monotonic_ns());
  EXPECT_EQ(clock.ns_between(1000, 1700), 700U);
}

TEST(TickClock, TakesASpanThatEndsBeforeItBeganForNone) {
  TickClock clock;
  EXPECT_EQ(clock.ns_between(2000, 1999), 0U);
  clock.begin();
  pass_ns(50'000);
  clock.calibrate();
  EXPECT_EQ(clock.ns_between(2000, 1999), 0U);
}

}  // namespace
}  // namespace pickd::client

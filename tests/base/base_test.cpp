// Base: descriptors that are closed once, results, numbers of peers, random numbers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <set>

#include "daemon/base/clock.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/random.hpp"
#include "daemon/base/result.hpp"
#include "daemon/base/untrusted.hpp"

namespace pickd::base {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
Fd open_null() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(Fd, ClosesWhatItOwns) {
  int number = -1;
  {
    const Fd fd = open_null();
    number = fd.get();
    ASSERT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, PassesOnWhatItOwnsWhenMoved) {
  Fd first = open_null();
  const int number = first.get();
  Fd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT: what a moved one says is the point
  EXPECT_EQ(second.get(), number);
  Fd third = open_null();
  const int closed = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_TRUE(is_open(number));
  EXPECT_TRUE(closed == number || !is_open(closed));
}

TEST(Fd, KeepsItsDescriptorWhenMovedToItself) {
  Fd fd = open_null();
  Fd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(fd.valid());
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(Fd, LetsGoWithoutClosing) {
  Fd fd = open_null();
  const int number = fd.release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good(7);
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 7);
  const Result<int> bad(Error{-ENOENT, "nothing there"});
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, -ENOENT);
  EXPECT_EQ(bad.error().text, "nothing there");
}

TEST(Result, OfNothingIsGoodUntilItHoldsAnError) {
  EXPECT_TRUE(Result<void>().ok());
  const Result<void> bad(Error{-EPERM, "no"});
  EXPECT_FALSE(static_cast<bool>(bad));
  EXPECT_EQ(bad.error().code, -EPERM);
}

TEST(Result, TakesAnErrorOutOfErrnoWithWords) {
  errno = EACCES;
  const Error error = errno_error("opening x");
  EXPECT_EQ(error.code, -EACCES);
  EXPECT_EQ(error.text, "opening x: Permission denied");
}

TEST(Untrusted, ComesOutOnlyWithinItsLimits) {
  EXPECT_EQ(Untrusted<std::uint32_t>(5).at_most(5), 5U);
  EXPECT_EQ(Untrusted<std::uint32_t>(6).at_most(5), std::nullopt);
  EXPECT_EQ(Untrusted<std::uint64_t>(~0ULL).at_most(5), std::nullopt);
  EXPECT_EQ(Untrusted<int>(2).within(2, 4), 2);
  EXPECT_EQ(Untrusted<int>(4).within(2, 4), 4);
  EXPECT_EQ(Untrusted<int>(1).within(2, 4), std::nullopt);
  EXPECT_EQ(Untrusted<int>(5).within(2, 4), std::nullopt);
}

TEST(Random, RepeatsItselfForASeedAndNotForAnother) {
  Random first(1);
  Random again(1);
  Random other(2);
  int equal = 0;
  for (int at = 0; at < 100; ++at) {
    const std::uint64_t number = first.next();
    EXPECT_EQ(again.next(), number);
    equal += other.next() == number ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(Random, StaysBelowItsBoundAndReachesEveryNumber) {
  Random random(3);
  std::array<int, 7> counts{};
  for (int at = 0; at < 70'000; ++at) {
    const std::uint32_t number = random.below(7);
    ASSERT_LT(number, 7U);
    ++counts[number];
  }
  for (const int count : counts) {
    EXPECT_GT(count, 9'600);
    EXPECT_LT(count, 10'400);
  }
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, FillsEveryByteFromTheSystem) {
  std::array<unsigned char, 1024> bytes{};
  random_bytes(bytes.data(), bytes.size());
  EXPECT_GT(std::set<unsigned char>(bytes.begin(), bytes.end()).size(), 200U);
  EXPECT_NE(random_u64(), random_u64());
}

TEST(Clock, CountsNanosecondsAndDoesNotGoBack) {
  const std::uint64_t first = monotonic_ns();
  EXPECT_GE(monotonic_ns(), first);
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  EXPECT_GE(boot_ns(), static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL);
}

}  // namespace
}  // namespace pickd::base

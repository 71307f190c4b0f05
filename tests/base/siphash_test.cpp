// SipHash against values that other implementations give.
#include "daemon/base/siphash.hpp"

#include <gtest/gtest.h>

namespace pickd::base {
namespace {

constexpr std::uint64_t kFirst = 0x0706050403020100;
constexpr std::uint64_t kSecond = 0x0F0E0D0C0B0A0908;

TEST(SipHash, GivesTheAuthorsValueOfTheBytesZeroToFifteen) {
  EXPECT_EQ((siphash<2, 4>({kFirst, kSecond}, kFirst, kSecond)), 0x3F2ACC7F57C29BDBU);
}

TEST(SipHash, GivesWhatPythonsHashGivesWithAKeyOfZeros) {
  EXPECT_EQ((siphash<1, 3>({}, kFirst, kSecond)), 0x8972188433A5C5B7U);
}

}  // namespace
}  // namespace pickd::base

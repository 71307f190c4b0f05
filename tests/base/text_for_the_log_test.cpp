// What strangers may put into the log, and how often.
#include <gtest/gtest.h>

#include "daemon/base/log.hpp"
#include "daemon/base/log_limit.hpp"
#include "daemon/base/printable.hpp"

namespace pickd::base {
namespace {

TEST(Printable, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("gateway-1 (go)", 127), "gateway-1 (go)");
  EXPECT_EQ(printable("a\nb\r\x1B[2Jc\x7F\x9B\xC2\x85", 127), "a?b??[2Jc????");
  EXPECT_EQ(printable("a\" pid 1", 127), "a? pid 1") << "it does not end where it is quoted";
  EXPECT_EQ(printable(std::string("a\0b", 3), 127), "a?b");
  EXPECT_EQ(printable("abcdef", 3), "abc");
}

TEST(Log, IsOneLineAnEventWhateverStandsInIt) {
  start_log("info");
  ::testing::internal::CaptureStderr();
  spdlog::info("endpoint \"{}\": gone", "a\n2026-01-01 info all is well\x1B[2J");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("endpoint \"a?2026-01-01 info all is well?[2J\": gone\n"),
            std::string::npos)
      << logged;
  EXPECT_NE(logged.find("info"), std::string::npos);
}

TEST(LogLimit, LetsAFewThroughAtOnceAndThenOneNowAndThen) {
  LogLimit limit;
  std::uint64_t now_ns = 1'000'000'000'000;
  for (std::uint32_t at = 0; at < LogLimit::kAtOnce; ++at) EXPECT_EQ(limit.take(now_ns), 0U);
  for (int at = 0; at < 1000; ++at) EXPECT_FALSE(limit.take(now_ns).has_value());
  now_ns += LogLimit::kEveryNs;
  EXPECT_EQ(limit.take(now_ns), 1000U) << "it says how many were left out";
  EXPECT_FALSE(limit.take(now_ns).has_value());
  now_ns += LogLimit::kEveryNs;
  EXPECT_EQ(limit.take(now_ns), 1U);
  now_ns += 100 * LogLimit::kEveryNs;
  for (std::uint32_t at = 0; at < LogLimit::kAtOnce; ++at) EXPECT_EQ(limit.take(now_ns), 0U);
  EXPECT_FALSE(limit.take(now_ns).has_value()) << "rest is not saved up";
}

}  // namespace
}  // namespace pickd::base

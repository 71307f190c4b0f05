// Text to values and back.
#include "daemon/config/values.hpp"

#include <gtest/gtest.h>

#include "daemon/config/errors.hpp"

namespace pickd::config {
namespace {

constexpr Range kAny = {0, 1'000'000'000'000, false};

TEST(Values, ReadDurationsWithTheirUnits) {
  const auto ns = [](const std::string& text) {
    const auto value = parse_duration(text, 1, {0, 4'000'000'000'000'000, false});
    return value ? static_cast<long long>(value.value()) : -1;
  };
  EXPECT_EQ(ns("7ns"), 7);
  EXPECT_EQ(ns("7us"), 7'000);
  EXPECT_EQ(ns("500ms"), 500'000'000);
  EXPECT_EQ(ns("1.5s"), 1'500'000'000);
  EXPECT_EQ(ns("30min"), 1'800'000'000'000);
  EXPECT_EQ(ns("30m"), 1'800'000'000'000);
  EXPECT_EQ(ns("1h30m5s"), 5'405'000'000'000);
  for (const char* wrong :
       {"", "s", "5", "5 s", "5d", "-5s", "+5s", "1..5s", "5s5", "nans", "infs", "1e3s", "5S"}) {
    EXPECT_EQ(ns(wrong), -1) << wrong;
  }
  EXPECT_EQ(ns("99999999999999999999h"), -1);
}

TEST(Values, RefuseDurationsFinerThanTheirUnit) {
  const auto value = parse_duration("1.5ms", 1'000'000, kAny);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().text, "must be a whole number of ms, is `1.5ms`");
}

TEST(Values, WriteWhatTheyRead) {
  for (const std::uint64_t ns :
       {0ULL, 1ULL, 1500ULL, 90'000'000'000ULL, 1'800'000'000'000ULL, 43'200'000'000'000ULL}) {
    const auto again = parse_duration(format_duration(ns), 1, {0, UINT64_MAX / 2, false});
    ASSERT_TRUE(again.ok()) << again.error().text;
    EXPECT_EQ(again.value(), ns) << format_duration(ns);
  }
  EXPECT_EQ(format_duration(1'800'000'000'000), "30min");
  for (const double value : {0.0, -0.0, 0.1, -1e-300, 1.7976931348623157e308, 5e-324, 3.0}) {
    EXPECT_EQ(
        parse_number(format_number(value), -1.7976931348623157e308, 1.7976931348623157e308).value(),
        value);
  }
  EXPECT_EQ(parse_mode(format_mode(0640)).value(), 0640U);
  EXPECT_EQ(parse_mode("0o640").value(), 0640U);
}

TEST(Values, RefuseNumbersThatAreNotPlain) {
  for (const char* wrong :
       {"", "1,5", "0x10", "1_000", "nan", ".nan", "inf", "-inf", "1e999", "--1", "1-", " 1"}) {
    EXPECT_FALSE(parse_number(wrong, -1e300, 1e300).ok()) << wrong;
    EXPECT_FALSE(parse_integer(wrong, kAny, "").ok()) << wrong;
  }
  EXPECT_EQ(parse_number("+1.5", 0, 2).value(), 1.5);
  EXPECT_EQ(parse_integer("007", kAny, "").value(), 7U);
}

TEST(Errors, SuggestTheNearestWordOrListThem) {
  EXPECT_EQ(nearest("tll", {"path", "ttl"}), "ttl");
  EXPECT_EQ(nearest("SIZE-MIB", {"size_mib"}), "size_mib");
  EXPECT_EQ(nearest("zzzz", {"path", "ttl"}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), {"path"}), "");
  EXPECT_EQ(suggestion("zzzz", {"path", "ttl"}), "; known: path, ttl");
}

TEST(Errors, ShowValuesShortAndWithoutControlCharacters) {
  EXPECT_EQ(shown("a\nb\x1b[31m"), "`a\\x0ab\\x1b[31m`");
  EXPECT_EQ(shown(std::string(100, 'x')), "`" + std::string(60, 'x') + "...`");
}

}  // namespace
}  // namespace pickd::config

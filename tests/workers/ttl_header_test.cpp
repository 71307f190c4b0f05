// The affinity TTL that a request says: field case 46 in text form.
#include "daemon/workers/ttl_header.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pickd::workers {
namespace {

TEST(TtlHeader, ReadsSecondsAndUnitsAndNothingElse) {
  struct Case {
    std::string_view text;
    std::uint64_t ms;
  };
  const Case good[] = {{"300", 300'000},    {"90s", 90'000},      {"5m", 300'000},
                       {"5min", 300'000},   {"1h", 3'600'000},    {"500ms", 500},
                       {"24h", 86'400'000}, {"86400", 86'400'000}};
  for (const Case& one : good) {
    std::uint32_t ignored = 0;
    EXPECT_EQ(parse_ttl_ms(one.text, &ignored), one.ms) << one.text;
    EXPECT_EQ(ignored, 0U) << one.text;
  }
  for (const std::string_view bad :
       {"", " ", "0", "0h", "-1", "-5m", "1.5h", "5 m", "5d", "h", "25h", "86401", "4294967296",
        "4294967295h", "NaN", "inf", "1h1h", "0x10"}) {
    std::uint32_t ignored = 0;
    EXPECT_EQ(parse_ttl_ms(bad, &ignored), 0U) << bad;
    EXPECT_EQ(ignored, 1U) << bad;
  }
}

TEST(TtlHeader, IsFoundWhateverItsCaseAndAbsentWithoutAWord) {
  pick::PickRequest request;
  std::uint32_t ignored = 0;
  read_affinity_ttl(request, &ignored);
  EXPECT_EQ(request.affinity_ttl_ms, 0U);
  const std::vector<pick::Attribute> attributes = {{"a", "b"}, {"X-Pickd-Affinity-TTL", "5m"}};
  request.attributes = attributes;
  read_affinity_ttl(request, &ignored);
  EXPECT_EQ(request.affinity_ttl_ms, 300'000U);
  EXPECT_EQ(ignored, 0U);
}

}  // namespace
}  // namespace pickd::workers

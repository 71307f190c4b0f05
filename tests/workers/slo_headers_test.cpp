// The latency a request wants, out of fields and headers: field case 91 in text form.
#include "daemon/workers/slo_headers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace pickd::workers {
namespace {

struct Read {
  pick::PickRequest request;
  std::uint32_t ignored = 0;
};

Read read(const std::vector<pick::Attribute>& attributes, float ttft_ms = 0, float itl_ms = 0) {
  Read made;
  made.request.slo_ttft_ms = ttft_ms;
  made.request.slo_itl_ms = itl_ms;
  made.request.attributes = attributes;
  read_slos(made.request, &made.ignored);
  return made;
}

TEST(SloHeaders, GiveEachValueADefinedMeaningAndNoneIsTheMostUrgent) {
  struct Case {
    std::string_view text;
    float ms;
    std::uint32_t ignored;
  };
  const Case cases[] = {
      {"200", 200, 0},    {" 200 ", 200, 0}, {"\t200", 200, 0},
      {"1e3", 1000, 0},   {"0.5", .5, 0},    {"86400000", 86'400'000, 0},
      {"0", 0, 0},        {"-0", 0, 0},      {"9223372036854775807", 0, 1},
      {"9.3e12", 0, 1},   {"1e999", 0, 1},   {"86400100", 0, 1},
      {"-1", 0, 1},       {"-1e-9", 0, 1},   {"", 0, 1},
      {" ", 0, 1},        {"abc", 0, 1},     {"200ms", 0, 1},
      {"200 300", 0, 1},  {"200,300", 0, 1}, {"NaN", 0, 1},
      {"nan", 0, 1},      {"inf", 0, 1},     {"-inf", 0, 1},
      {"Infinity", 0, 1}, {"0x10", 0, 1},    {std::string_view("200\0", 4), 0, 1},
  };
  for (const Case& one : cases) {
    const Read ttft = read({{"x-llm-d-slo-ttft-ms", one.text}});
    EXPECT_EQ(ttft.request.slo_ttft_ms, one.ms) << '"' << one.text << '"';
    EXPECT_EQ(ttft.request.slo_itl_ms, 0) << '"' << one.text << '"';
    EXPECT_EQ(ttft.ignored, one.ignored) << '"' << one.text << '"';
    const Read itl = read({{"x-llm-d-slo-tpot-ms", one.text}});
    EXPECT_EQ(itl.request.slo_itl_ms, one.ms) << '"' << one.text << '"';
    EXPECT_EQ(itl.ignored, one.ignored) << '"' << one.text << '"';
  }
}

TEST(SloHeaders, HaveTheNamesOfTheEndpointPickerWhateverTheirCase) {
  for (const char* name : {"x-llm-d-slo-ttft-ms", "x-slo-ttft-ms", "X-SLO-TTFT-MS"})
    EXPECT_EQ(read({{name, "300"}}).request.slo_ttft_ms, 300) << name;
  for (const char* name : {"x-llm-d-slo-itl-ms", "x-slo-itl-ms", "x-llm-d-slo-tpot-ms",
                           "x-slo-tpot-ms", "X-Llm-D-Slo-Tpot-Ms"})
    EXPECT_EQ(read({{name, "30"}}).request.slo_itl_ms, 30) << name;
  EXPECT_EQ(read({{"slo-ttft-ms", "300"}}).request.slo_ttft_ms, 0);
}

TEST(SloHeaders, TakeTheFirstNameThatIsThere) {
  const Read both = read({{"x-slo-ttft-ms", "900"}, {"x-llm-d-slo-ttft-ms", "300"}});
  EXPECT_EQ(both.request.slo_ttft_ms, 300);
  // Nonsense under the first name is not mended by the second.
  const Read bad = read({{"x-slo-ttft-ms", "900"}, {"x-llm-d-slo-ttft-ms", "soon"}});
  EXPECT_EQ(bad.request.slo_ttft_ms, 0);
  EXPECT_EQ(bad.ignored, 1U);
}

TEST(SloHeaders, AreNoneWhereOneStandsTwiceWithDifferentValues) {
  const Read twice = read({{"x-slo-ttft-ms", "300"}, {"X-Slo-Ttft-Ms", "900"}});
  EXPECT_EQ(twice.request.slo_ttft_ms, 0);
  EXPECT_EQ(twice.ignored, 1U);
  const Read same = read({{"x-slo-ttft-ms", "300"}, {"X-Slo-Ttft-Ms", "300"}});
  EXPECT_EQ(same.request.slo_ttft_ms, 300);
  EXPECT_EQ(same.ignored, 0U);
}

TEST(SloHeaders, GiveWayToWhatTheRequestSaysItself) {
  const Read own = read({{"x-slo-ttft-ms", "900"}, {"x-slo-tpot-ms", "90"}}, 300, 30);
  EXPECT_EQ(own.request.slo_ttft_ms, 300);
  EXPECT_EQ(own.request.slo_itl_ms, 30);
  const Read nonsense = read({{"x-slo-ttft-ms", "900"}}, std::nanf(""), -1);
  EXPECT_EQ(nonsense.request.slo_ttft_ms, 0);
  EXPECT_EQ(nonsense.request.slo_itl_ms, 0);
  EXPECT_EQ(nonsense.ignored, 2U);
}

TEST(SloHeaders, SwitchPredictionOffForARequest) {
  EXPECT_TRUE(read({}).request.predict);
  EXPECT_TRUE(read({{"x-slo-ttft-ms", "1"}}).request.predict);
  for (const char* value : {"true", "1", "", "yes"})
    EXPECT_FALSE(read({{"x-prediction-based-scheduling-off", value}}).request.predict) << value;
  for (const char* value : {"false", "0", " False "}) {
    EXPECT_TRUE(read({{"x-prediction-based-scheduling-off", value}}).request.predict) << value;
    EXPECT_FALSE(read({{"x-prediction-based-scheduling", value}}).request.predict) << value;
  }
  EXPECT_TRUE(read({{"x-prediction-based-scheduling", "true"}}).request.predict);
}

}  // namespace
}  // namespace pickd::workers

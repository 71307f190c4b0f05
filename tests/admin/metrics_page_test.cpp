// The page of metrics, letter by letter where a scraper minds; docs/metrics.md.
#include "daemon/admin/metrics_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "daemon/admin/metric_tables.hpp"
#include "daemon/admin/utf8.hpp"

namespace pickd::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::array<std::uint64_t, 3> kBounds = {100, 1000, 2500};
constexpr base::HistogramShape kShape{kBounds, 1e-3};

EndpointFacts endpoint(const std::string& name, std::uint64_t picks) {
  EndpointFacts facts;
  facts.name = name;
  facts.pool = "chat";
  facts.state = "ready";
  facts.picks = picks;
  return facts;
}

Facts some_facts() {
  Facts facts;
  facts.version = "1.2.3";
  facts.profile = "a \"b\" \\ c\nd";
  facts.counters[static_cast<std::size_t>(abi::Counter::picks)] = 7;
  facts.endpoints = {endpoint("e0", 3), endpoint("e1", 4), endpoint("e2", 5)};
  facts.endpoints[0].kv_use = 0.25;
  facts.endpoints[1].kv_use = 0.75;
  facts.picks_by_reason = {{"prefix", 6}};
  facts.pick_seconds = {&kShape, {1, 0, 2, 4}, 12345};
  return facts;
}

TEST(MetricsPage, HasCountersGaugesAndHistograms) {
  const std::string page = metrics_page(some_facts(), MetricsFormat::kPrometheus, 10);
  EXPECT_THAT(page, HasSubstr("# TYPE pickd_picks_total counter\npickd_picks_total 7\n"));
  EXPECT_THAT(page, HasSubstr("pickd_endpoints 3\n"));
  EXPECT_THAT(page, HasSubstr("pickd_picks_by_reason_total{reason=\"prefix\"} 6\n"));
  EXPECT_THAT(page, HasSubstr("pickd_endpoint_picks_total{endpoint=\"e1\",pool=\"chat\"} 4\n"));
  EXPECT_THAT(page,
              HasSubstr("pickd_endpoint_state{endpoint=\"e0\",pool=\"chat\",state=\"ready\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("pickd_pool_kv_use_ratio_mean{pool=\"chat\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("pickd_pool_kv_use_ratio_deviation{pool=\"chat\"} 0.25\n"));
  EXPECT_THAT(page, HasSubstr("pickd_pick_duration_seconds_bucket{le=\"0.1\"} 1\n"
                              "pickd_pick_duration_seconds_bucket{le=\"1.0\"} 1\n"
                              "pickd_pick_duration_seconds_bucket{le=\"2.5\"} 3\n"
                              "pickd_pick_duration_seconds_bucket{le=\"+Inf\"} 7\n"
                              "pickd_pick_duration_seconds_sum 12.345\n"
                              "pickd_pick_duration_seconds_count 7\n"));
  EXPECT_THAT(page, Not(HasSubstr("# EOF")));
}

TEST(MetricsPage, EscapesWhatOthersNamed) {
  EXPECT_THAT(metrics_page(some_facts(), MetricsFormat::kPrometheus, 10),
              HasSubstr("profile=\"a \\\"b\\\" \\\\ c\\nd\"} 1\n"));
  Facts facts = some_facts();
  facts.endpoints[0].name = "e\xFF\xC3\xA9";
  EXPECT_THAT(metrics_page(facts, MetricsFormat::kPrometheus, 10),
              HasSubstr("endpoint=\"e?\xC3\xA9\""));
}

TEST(MetricsPage, SumsEndpointsBeyondTheLimitWhereASumSaysSomething) {
  const std::string page = metrics_page(some_facts(), MetricsFormat::kPrometheus, 1);
  EXPECT_THAT(page, HasSubstr("pickd_endpoint_picks_total{endpoint=\"e0\",pool=\"chat\"} 3\n"
                              "pickd_endpoint_picks_total{endpoint=\"other\",pool=\"other\"} 9\n"));
  EXPECT_THAT(page, Not(HasSubstr("endpoint=\"e1\"")));
  EXPECT_THAT(page, Not(HasSubstr("pickd_endpoint_kv_use_ratio{endpoint=\"other\"")));
}

TEST(MetricsPage, TellsAsManyPoolsApartAsItMay) {
  Facts facts;
  for (std::size_t at = 0; at < kPoolsMax + 10; ++at) {
    facts.endpoints.push_back(endpoint("e" + std::to_string(at), 0));
    facts.endpoints.back().pool = "pool-" + std::to_string(at);
  }
  const std::string page = metrics_page(facts, MetricsFormat::kPrometheus, 1);
  EXPECT_THAT(page, HasSubstr("pickd_pool_endpoints_ready{pool=\"other\"} 10\n"));
  EXPECT_THAT(page, Not(HasSubstr("pool=\"pool-64\"")));
}

TEST(MetricsPage, NamesCounterFamiliesAsOpenMetricsWantsThem) {
  const std::string page = metrics_page(some_facts(), MetricsFormat::kOpenMetrics, 10);
  EXPECT_THAT(page, HasSubstr("# TYPE pickd_picks counter\npickd_picks_total 7\n"));
  EXPECT_TRUE(page.ends_with("\n# EOF\n"));
}

TEST(MetricsFormat, IsWhatTheScraperWouldRatherHave) {
  EXPECT_EQ(format_for(""), MetricsFormat::kPrometheus);
  EXPECT_EQ(format_for("*/*"), MetricsFormat::kPrometheus);
  EXPECT_EQ(format_for("text/plain;version=0.0.4"), MetricsFormat::kPrometheus);
  EXPECT_EQ(format_for("application/openmetrics-text"), MetricsFormat::kOpenMetrics);
  EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,"
                       "application/openmetrics-text;version=0.0.1;q=0.75,"
                       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            MetricsFormat::kOpenMetrics);
  EXPECT_EQ(format_for("Application/OpenMetrics-Text; Q=0.2, text/plain"),
            MetricsFormat::kPrometheus);
  EXPECT_EQ(format_for("application/openmetrics-text;version=0.0.1, text/plain;q=0.5"),
            MetricsFormat::kPrometheus);
  EXPECT_EQ(format_for("application/openmetrics-text;q=0"), MetricsFormat::kPrometheus);
}

TEST(ValidUtf8, KeepsCharactersAndNothingElse) {
  EXPECT_EQ(valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(valid_utf8("\xC0\x80|\xED\xA0\x80|\xE2\x82|\xF5\x80\x80\x80|\xF4\x90\x80\x80"),
            "??|???|??|????|????");
}

TEST(MetricsManual, SaysWhatTheTablesSay) {
  const std::string path = PICKD_SOURCE_DIR "/docs/metrics.md";
  if (std::getenv("REGENERATE_MANUAL") != nullptr) std::ofstream(path) << metrics_manual();
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, metrics_manual()) << "run ./dev manual";
}

}  // namespace
}  // namespace pickd::admin

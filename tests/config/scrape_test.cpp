// The section `scrape`: ranges that protect engines, and engines with metrics of their own.
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigScrape : public ConfigFiles {};

TEST_F(ConfigScrape, HasDefaultsThatEnginesStand) {
  const ScrapeConfig scrape = good("").scrape;
  EXPECT_TRUE(scrape.enabled);
  EXPECT_EQ(scrape.interval_ms, 1000U);
  EXPECT_EQ(scrape.connect_timeout_ms, 1000U);
  EXPECT_EQ(scrape.timeout_ms, 2000U);
  EXPECT_EQ(scrape.stale_ms, 0U);
  EXPECT_EQ(scrape.page_bytes_max, 4U << 20);
  EXPECT_EQ(scrape.path, "/metrics");
  EXPECT_EQ(scrape.health_path, "");
  EXPECT_FALSE(scrape.tls);
  EXPECT_TRUE(scrape.engines.empty());
}

// Field case 107.
TEST_F(ConfigScrape, RefusesIntervalsThatHurt) {
  for (const char* interval : {"0ms", "1ms", "99ms", "-1s", "11min"}) {
    const std::string error = bad(std::string("scrape: {interval: ") + interval + "}\n");
    EXPECT_NE(error.find("pickd.yaml:1: scrape.interval: must be a duration"), std::string::npos)
        << error;
    EXPECT_NE(error.find("100ms"), std::string::npos) << error;
  }
  EXPECT_EQ(good("scrape: {interval: 100ms}\n").scrape.interval_ms, 100U);
  EXPECT_NE(bad("scrape: {timeout: 0ms}\n"), "");
  EXPECT_NE(bad("scrape: {page_bytes_max: 0}\n"), "");
}

TEST_F(ConfigScrape, ReadsEnginesWithMetricsOfTheirOwn) {
  const Config config = good(R"(
scrape:
  engine: mine
  engines:
    - {name: mine, waiting: 'queue_depth{state="waiting"}', block_tokens_label: page_size}
    - name: vllm
      kv_use: vllm:other_usage
)");
  EXPECT_EQ(config.scrape.engine, "mine");
  ASSERT_EQ(config.scrape.engines.size(), 2U);
  EXPECT_EQ(config.scrape.engines[0].waiting, "queue_depth{state=\"waiting\"}");
  EXPECT_EQ(config.scrape.engines[0].block_tokens_label, "page_size");
  EXPECT_EQ(config.scrape.engines[0].running, "");
  EXPECT_EQ(config.scrape.engines[1].kv_use, "vllm:other_usage");
}

TEST_F(ConfigScrape, RefusesEnginesThatSayNothingOrTwice) {
  EXPECT_EQ(bad("scrape: {engines: [{waiting: a}]}\n"),
            "pickd.yaml:1: scrape.engines[0].name: is missing; every entry needs it");
  EXPECT_EQ(bad("scrape:\n  engines:\n    - {name: a}\n    - {name: a}\n"),
            "pickd.yaml:4: scrape.engines[1].name: the engine `a` is there already, at "
            "pickd.yaml:3");
  EXPECT_EQ(bad("scrape: {engines: [{name: a, runing: b}]}\n"),
            "pickd.yaml:1: scrape.engines[0].runing: unknown key (did you mean `running`?)");
  EXPECT_EQ(bad("scrape: {engines: a}\n"),
            "pickd.yaml:1: scrape.engines: must be a list of at most 32 engines (`- name: ...`)");
}

}  // namespace
}  // namespace pickd::config

// Who is scraped and where; what an answer means; what the settings come to.
#include <gtest/gtest.h>

#include "daemon/config/address.hpp"
#include "daemon/scrape/scraper.hpp"
#include "daemon/scrape/targets.hpp"
#include "daemon/scrape/verdict.hpp"

namespace pickd::scrape {
namespace {

config::ScrapeConfig defaults() { return config::Config().scrape; }

endpoints::TopologyEndpoint at(const std::string& address, const std::string& metrics_url = "",
                               const std::string& source = "file") {
  endpoints::TopologyEndpoint made;
  made.address = address;
  made.metrics_url = metrics_url;
  made.source = source;
  return made;
}

std::string url(const config::ScrapeConfig& scrape, const endpoints::TopologyEndpoint& endpoint) {
  auto made = page_url(scrape, endpoint);
  return made ? made->text() : "none";
}

TEST(ScrapeTargets, AreAtTheConfiguredPathOfTheAddress) {
  config::ScrapeConfig scrape = defaults();
  EXPECT_EQ(url(scrape, at("10.0.0.1:8000")), "http://10.0.0.1:8000/metrics");
  EXPECT_EQ(url(scrape, at("[fd00::1]:8000")), "http://[fd00::1]:8000/metrics");
  EXPECT_EQ(url(scrape, at("https://engine/v1")), "https://engine/metrics");
  scrape.tls = true;
  scrape.path = "stats";
  EXPECT_EQ(url(scrape, at("10.0.0.1:8000")), "https://10.0.0.1:8000/stats");
  EXPECT_EQ(url(scrape, at("http://10.0.0.1:8000")), "http://10.0.0.1:8000/stats");
  EXPECT_EQ(url(scrape, at("10.0.0.1:8000", "http://10.0.0.1:9/m?x")), "http://10.0.0.1:9/m?x");
}

// What the check of endpoints lets through must be what can be asked: else nobody would tell that
// an endpoint is not watched.
TEST(ScrapeTargets, AreWhatTheCheckOfEndpointsLetsThrough) {
  for (const char* text : {"http://h/m",
                           "https://h:1",
                           "http://h?x",
                           "http://[fd00::1]:80/m",
                           "http://[fd00::1]/m",
                           "http://h:65535",
                           "http://10.0.0.1:9/a/b?c=d:e@f",
                           "http://",
                           "http://:80/",
                           "http://h:0",
                           "http://h:65536",
                           "http://h:x",
                           "http://h:/m",
                           "http://fd00::1/m",
                           "http://u@h/m",
                           "http://h/m#x",
                           "http://h/\\m",
                           "http://h /m",
                           "ftp://h/m",
                           "h:80/m"}) {
    const bool taken = config::metrics_url_mistake(text).empty();
    const bool has_scheme = std::string(text).rfind("http", 0) == 0;  // the reader needs none
    EXPECT_EQ(taken, has_scheme && is_scraped(defaults(), at("10.0.0.1:1", text))) << text;
  }
}

TEST(ScrapeTargets, HaveOnePageForEachPortOnce) {
  endpoints::TopologyEndpoint dp = at("10.0.0.1:8000");
  dp.more_ports = {8001, 8000, 8002, 8001};
  std::string all;
  auto pages = page_urls(defaults(), dp);
  for (const net::http::Url& page : *pages) all += page.text() + " ";
  EXPECT_EQ(all,
            "http://10.0.0.1:8000/metrics http://10.0.0.1:8001/metrics "
            "http://10.0.0.1:8002/metrics ");
  dp.address = "unix:/run/engine.sock";
  EXPECT_FALSE(page_urls(defaults(), dp).ok());
}

TEST(ScrapeTargets, AreNotThoseOfClientsThatTellLoadThemselves) {
  const config::ScrapeConfig scrape = defaults();
  EXPECT_TRUE(is_scraped(scrape, at("10.0.0.1:8000")));
  EXPECT_TRUE(is_scraped(scrape, at("10.0.0.1:8000", "", "dns:pool")));
  EXPECT_FALSE(is_scraped(scrape, at("10.0.0.1:8000", "", "client:5")));
  EXPECT_TRUE(is_scraped(scrape, at("10.0.0.1:8000", "http://10.0.0.1:9/m", "client:5")));
  EXPECT_FALSE(is_scraped(scrape, at("unix:/run/engine.sock")));
  config::ScrapeConfig off = scrape;
  off.enabled = false;
  EXPECT_FALSE(is_scraped(off, at("10.0.0.1:8000")));
  config::ScrapeConfig nothing = scrape;
  nothing.path = "";
  EXPECT_FALSE(is_scraped(nothing, at("10.0.0.1:8000")));
}

// Field case 58.
TEST(ScrapeStaleness, IsNeverLessThanTwoIntervals) {
  config::ScrapeConfig scrape = defaults();
  EXPECT_EQ(stale_ticks(scrape), 40U);  // 2 s
  scrape.interval_ms = 15'000;
  EXPECT_EQ(stale_ticks(scrape), 600U);
  scrape.stale_ms = 200;
  EXPECT_EQ(stale_ticks(scrape), 600U);
  scrape.stale_ms = 60'000;
  EXPECT_EQ(stale_ticks(scrape), 1200U);
  scrape.interval_ms = 100;
  scrape.stale_ms = 0;
  EXPECT_EQ(stale_ticks(scrape), 40U) << "at least 2 s";
}

TEST(ScrapeSettings, AreRefusedWithTheNameOfTheSetting) {
  config::ScrapeConfig scrape = defaults();
  EXPECT_TRUE(check_scrape(scrape).ok());
  scrape.engine = "vlm";
  EXPECT_EQ(check_scrape(scrape).error().text.rfind("scrape.engine: must be one of vllm", 0), 0U);
  scrape = defaults();
  scrape.engines.push_back({.name = "mine", .waiting = "queue{"});
  EXPECT_EQ(check_scrape(scrape).error().text.rfind("scrape.engines: ", 0), 0U);
  scrape.engines[0].waiting = "queue";
  scrape.engine = "mine";
  EXPECT_TRUE(check_scrape(scrape).ok());
  scrape.tls_ca_file = "/nonexistent";
  EXPECT_EQ(check_scrape(scrape).error().text.rfind("scrape.tls_ca_file: ", 0), 0U);
  scrape.enabled = false;
  EXPECT_TRUE(check_scrape(scrape).ok());
}

TEST(ScrapeVerdict, TellsLifeFromHealth) {
  using net::http::Failure;
  using net::http::Outcome;
  const auto verdict = [](Failure failure, int status, bool health) {
    Outcome outcome;
    outcome.failure = failure;
    outcome.status = status;
    return judge(outcome, health).verdict;
  };
  EXPECT_EQ(verdict(Failure::kNone, 200, false), Verdict::kGood);
  EXPECT_EQ(verdict(Failure::kNone, 404, false), Verdict::kAlive);
  EXPECT_EQ(verdict(Failure::kNone, 404, true), Verdict::kFailed);
  EXPECT_EQ(verdict(Failure::kNone, 503, false), Verdict::kFailed);
  EXPECT_EQ(verdict(Failure::kBodyTooLarge, 200, false), Verdict::kAlive);
  EXPECT_EQ(verdict(Failure::kBodyTooLarge, 200, true), Verdict::kFailed);
  EXPECT_EQ(verdict(Failure::kTimeout, 200, false), Verdict::kFailed);
  EXPECT_EQ(verdict(Failure::kConnect, 0, false), Verdict::kFailed);
  EXPECT_EQ(verdict(Failure::kNoResources, 0, false), Verdict::kNotAsked);
  EXPECT_EQ(verdict(Failure::kNoResources, 0, true), Verdict::kNotAsked);
  EXPECT_EQ(verdict(Failure::kMalformed, 0, false), Verdict::kFailed);
}

}  // namespace
}  // namespace pickd::scrape

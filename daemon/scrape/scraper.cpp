#include "daemon/scrape/scraper.hpp"

#include <algorithm>

#include "daemon/base/log.hpp"
#include "daemon/net/http/bearer_token.hpp"
#include "daemon/net/http/tls.hpp"
#include "daemon/scrape/targets.hpp"

namespace pickd::scrape {

namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr std::uint64_t kTickMs = abi::kTickNs / kMillisecondNs;
constexpr std::uint64_t kStaleMsMin = 2000;
// The first pages of endpoints that join together: as quick as this, or spread over an interval.
constexpr std::uint64_t kFirstPagesApartNs = kMillisecondNs;
constexpr std::uint64_t kKeepAliveMs = 60'000;

base::Error of_setting(const char* setting, const base::Error& error) {
  return {error.code, std::string(setting) + ": " + error.text};
}

base::Result<MetricSpecs> make_specs(const config::ScrapeConfig& config) {
  std::vector<EngineOverride> overrides;
  for (const config::EngineMetricsConfig& engine : config.engines) {
    overrides.push_back({engine.name, engine.waiting, engine.running, engine.kv_use,
                         engine.adapters, engine.cache_info, engine.block_tokens_label,
                         engine.blocks_label, engine.block_tokens, engine.blocks});
  }
  auto specs = MetricSpecs::make(overrides);
  if (!specs) return of_setting("scrape.engines", specs.error());
  if (!config.engine.empty() && specs->find_engine(config.engine) == MetricSpecs::kAnyEngine) {
    std::string known;
    for (const MetricSpecs::Engine& engine : specs->engines())
      known += (known.empty() ? "" : ", ") + engine.name;
    return base::Error{-EINVAL,
                       "scrape.engine: must be one of " + known + ", or in scrape.engines"};
  }
  return specs;
}

base::Result<std::shared_ptr<net::http::TlsContext>> make_tls(const config::ScrapeConfig& config) {
  auto tls = net::http::TlsContext::create(
      {config.tls_ca_file, config.tls_skip_verify, config.tls_server_name});
  if (!tls) return of_setting("scrape.tls_ca_file", tls.error());
  return tls;
}

}  // namespace

base::Result<void> check_scrape(const config::ScrapeConfig& config) {
  if (!config.enabled) return {};
  if (auto specs = make_specs(config); !specs) return specs.error();
  if (auto tls = make_tls(config); !tls) return tls.error();
  return {};
}

std::uint32_t stale_ticks(const config::ScrapeConfig& config) {
  const std::uint64_t least_ms = 2 * config.interval_ms;
  const std::uint64_t stale_ms =
      config.stale_ms == 0 ? std::max(least_ms, kStaleMsMin) : std::max(least_ms, config.stale_ms);
  return static_cast<std::uint32_t>((stale_ms + kTickMs - 1) / kTickMs);
}

base::Result<std::unique_ptr<Scraper>> Scraper::create(const config::ScrapeConfig& config,
                                                       const ScraperParts& parts) {
  auto specs = make_specs(config);
  if (!specs) return specs.error();
  auto tls = make_tls(config);
  if (!tls) return tls.error();
  if (config.stale_ms != 0 && config.stale_ms < 2 * config.interval_ms) {
    spdlog::warn(
        "scrape.stale: {} ms is less than two intervals of {} ms: every page would be stale before "
        "the next one; taken as two intervals",
        config.stale_ms, config.interval_ms);
  }
  net::http::ClientOptions client;
  client.connect_timeout_ms = config.connect_timeout_ms;
  client.keep_alive_ms = std::max(kKeepAliveMs, 3 * config.interval_ms);
  client.tls = std::move(*tls);
  client.resolver = parts.resolver;
  if (!config.bearer_token_file.empty())
    client.token = std::make_shared<net::http::BearerToken>(config.bearer_token_file);
  ScrapeContext context{parts.reactor,
                        parts.listener,
                        parts.records,
                        parts.tick_now,
                        config,
                        std::move(client),
                        std::move(*specs),
                        state::Counters(parts.counters_row),
                        base::Random(parts.seed)};
  return std::unique_ptr<Scraper>(new Scraper(parts, std::move(context)));
}

void Scraper::follow() {
  struct Wanted {
    std::vector<net::http::Url> urls;
    std::vector<PageMember> members;
  };
  std::unordered_map<std::string, Wanted> wanted;
  for (const endpoints::TopologyEndpoint& endpoint : parts_.store->current().endpoints()) {
    if (!is_scraped(context_.config, endpoint)) continue;
    auto urls = page_urls(context_.config, endpoint);
    std::string texts;
    for (const net::http::Url& url : *urls) texts += url.text() + "\n";
    Wanted& page = wanted[texts];
    page.members.push_back({endpoint.id, endpoint.rank, endpoint.name, endpoint.engine});
    page.urls = std::move(*urls);
  }
  std::erase_if(pages_, [&wanted](const auto& page) { return !wanted.contains(page.first); });
  const auto joining = static_cast<std::uint64_t>(wanted.size() - pages_.size());
  const std::uint64_t spread_ns =
      std::min(joining * kFirstPagesApartNs, context_.config.interval_ms * kMillisecondNs);
  for (auto& [text, page] : wanted) {
    std::unique_ptr<PageScrape>& scrape = pages_[text];
    const bool joins = scrape == nullptr;
    if (joins) scrape = std::make_unique<PageScrape>(context_, page.urls);
    scrape->set_members(std::move(page.members));
    if (joins) scrape->start(spread_ns * context_.random.below(1 << 16) >> 16);
  }
}

}  // namespace pickd::scrape

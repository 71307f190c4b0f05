// Scraper: who is scraped, and from when on. Follows the topology: one PageScrape a page, or for
// the pages of one endpoint, kept as long as an endpoint needs it.
//
// Control thread only. What the pages say goes to a listener; load and health are its
// words, not the scraper's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/base/result.hpp"
#include "daemon/endpoints/topology_store.hpp"
#include "daemon/net/resolver.hpp"
#include "daemon/scrape/page_scrape.hpp"

namespace pickd::scrape {

struct ScraperParts {
  net::Reactor* reactor;
  net::Resolver* resolver;  // nullptr: only addresses are scraped, no names
  const endpoints::TopologyStore* store;
  ScrapeListener* listener;
  const abi::EndpointRecord* records;
  abi::Word* counters_row;
  std::function<std::uint64_t()> tick_now;
  std::uint64_t seed;  // of the jitter
};

// Whether the section can be used: are metrics and engines well said, can the CA file be read?
// Errors name the setting.
base::Result<void> check_scrape(const config::ScrapeConfig& config);

// Ticks from which what a page said is unknown: as configured, or two intervals and at least 2 s.
// Never less than two intervals: a page that was just late would be taken for none.
std::uint32_t stale_ticks(const config::ScrapeConfig& config);

class Scraper {
 public:
  // The parts must outlive it. Errors as of check_scrape().
  static base::Result<std::unique_ptr<Scraper>> create(const config::ScrapeConfig& config,
                                                       const ScraperParts& parts);

  // Takes over the newest topology. After every change of it, but not from inside the
  // listener.
  void follow();
  // Scrapes that go on.
  std::size_t pages() const { return pages_.size(); }

 private:
  Scraper(const ScraperParts& parts, ScrapeContext context)
      : parts_(parts), context_(std::move(context)) {}

  ScraperParts parts_;
  ScrapeContext context_;
  std::unordered_map<std::string, std::unique_ptr<PageScrape>> pages_;  // by their URLs
};

}  // namespace pickd::scrape

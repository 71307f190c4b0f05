// What all scrapes of a scraper share, and whom one is for. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/base/random.hpp"
#include "daemon/config/config.hpp"
#include "daemon/net/http/http_client.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/scrape/listener.hpp"
#include "daemon/scrape/page_reader.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::scrape {

// Outlives the scrapes.
struct ScrapeContext {
  net::Reactor* reactor;
  ScrapeListener* listener;
  const abi::EndpointRecord* records;
  std::function<std::uint64_t()> tick_now;
  config::ScrapeConfig config;
  net::http::ClientOptions client;
  MetricSpecs specs;
  state::Counters counters;
  base::Random random;
  // Between pages; as many as ever ran at one time.
  std::vector<PageReader> idle_readers = {};
};

// One endpoint that a page tells of.
struct PageMember {
  std::uint16_t id = 0;
  std::uint32_t rank = abi::kUnknown32;
  std::string name;
  std::string engine;
  std::uint32_t generation = 0;  // of the record when the running scrape was sent
};

}  // namespace pickd::scrape

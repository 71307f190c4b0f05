// Targets: which endpoints are scraped, and where their metrics page is. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/net/http/url.hpp"

namespace pickd::scrape {

// Where the page of an endpoint is: its metrics_url, else the configured path at its address.
base::Result<net::http::Url> page_url(const config::ScrapeConfig& scrape,
                                      const std::string& address, const std::string& metrics_url);
base::Result<net::http::Url> page_url(const config::ScrapeConfig& scrape,
                                      const endpoints::TopologyEndpoint& endpoint);
// All of its pages, each once: that one, and one beside it for each of its further ports.
base::Result<std::vector<net::http::Url>> page_urls(const config::ScrapeConfig& scrape,
                                                    const endpoints::TopologyEndpoint& endpoint);

// Whether an endpoint is scraped at all. Those of a client are only with a metrics URL: whoever
// manages endpoints over the control socket tells their load there. Neither is one whose address
// nothing can be asked at.
bool is_scraped(const config::ScrapeConfig& scrape, const std::string& address,
                const std::string& metrics_url, std::string_view source);
bool is_scraped(const config::ScrapeConfig& scrape, const endpoints::TopologyEndpoint& endpoint);

}  // namespace pickd::scrape

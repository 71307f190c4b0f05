#include "daemon/scrape/targets.hpp"

namespace pickd::scrape {

base::Result<net::http::Url> page_url(const config::ScrapeConfig& scrape,
                                      const endpoints::TopologyEndpoint& endpoint) {
  if (!endpoint.metrics_url.empty()) return net::http::parse_url(endpoint.metrics_url);
  const bool scheme = endpoint.address.find("://") != std::string::npos;
  auto url = net::http::parse_url((scheme       ? ""
                                   : scrape.tls ? "https://"
                                                : "http://") +
                                  endpoint.address);
  if (!url) return url;
  // The path of an address is that of requests; the page has its own.
  const std::string& path = scrape.path.empty() ? scrape.health_path : scrape.path;
  url->target = path.substr(0, 1) == "/" ? path : "/" + path;
  return url;
}

bool is_scraped(const config::ScrapeConfig& scrape, const endpoints::TopologyEndpoint& endpoint) {
  if (!scrape.enabled) return false;
  const bool of_client = endpoint.source.rfind("client:", 0) == 0;
  if (of_client && endpoint.metrics_url.empty()) return false;
  const bool something =
      !scrape.path.empty() || !scrape.health_path.empty() || !endpoint.metrics_url.empty();
  return something && page_url(scrape, endpoint).ok();
}

}  // namespace pickd::scrape

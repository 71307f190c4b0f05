#include "daemon/scrape/targets.hpp"

#include <algorithm>

namespace pickd::scrape {

base::Result<net::http::Url> page_url(const config::ScrapeConfig& scrape,
                                      const std::string& address, const std::string& metrics_url) {
  if (!metrics_url.empty()) return net::http::parse_url(metrics_url);
  const bool scheme = address.find("://") != std::string::npos;
  auto url = net::http::parse_url((scheme ? "" : scrape.tls ? "https://" : "http://") + address);
  if (!url) return url;
  // The path of an address is that of requests; the page has its own.
  const std::string& path = scrape.path.empty() ? scrape.health_path : scrape.path;
  url->target = path.substr(0, 1) == "/" ? path : "/" + path;
  return url;
}

bool is_scraped(const config::ScrapeConfig& scrape, const std::string& address,
                const std::string& metrics_url, std::string_view source) {
  if (!scrape.enabled) return false;
  const bool of_client = source.rfind("client:", 0) == 0;
  if (of_client && metrics_url.empty()) return false;
  const bool something =
      !scrape.path.empty() || !scrape.health_path.empty() || !metrics_url.empty();
  return something && page_url(scrape, address, metrics_url).ok();
}

base::Result<net::http::Url> page_url(const config::ScrapeConfig& scrape,
                                      const endpoints::TopologyEndpoint& endpoint) {
  return page_url(scrape, endpoint.address, endpoint.metrics_url);
}

base::Result<std::vector<net::http::Url>> page_urls(const config::ScrapeConfig& scrape,
                                                    const endpoints::TopologyEndpoint& endpoint) {
  auto first = page_url(scrape, endpoint);
  if (!first) return first.error();
  std::vector<net::http::Url> urls = {std::move(*first)};
  for (const std::uint16_t port : endpoint.more_ports) {
    const bool known =
        std::any_of(urls.begin(), urls.end(), [port](const auto& url) { return url.port == port; });
    if (known) continue;
    urls.push_back(urls.front());
    urls.back().port = port;
  }
  return urls;
}

bool is_scraped(const config::ScrapeConfig& scrape, const endpoints::TopologyEndpoint& endpoint) {
  return is_scraped(scrape, endpoint.address, endpoint.metrics_url, endpoint.source);
}

}  // namespace pickd::scrape

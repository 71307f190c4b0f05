#include "daemon/discovery/ranks.hpp"

namespace pickd::discovery {

namespace {

constexpr std::uint32_t kPortMax = 65535;

// Where the host begins and where it ends; behind that stand ":port" and the path, if any.
struct HostPlace {
  std::size_t from;
  std::size_t to;
};

HostPlace host_of(const std::string& address) {
  const std::size_t scheme = address.find("://");
  const std::size_t from = scheme == std::string::npos ? 0 : scheme + 3;
  const std::size_t slash = std::min(address.find('/', from), address.size());
  if (address[from] == '[') {
    const std::size_t bracket = address.find(']', from);
    return {from, bracket == std::string::npos ? slash : bracket + 1};
  }
  const std::size_t colon = address.find(':', from);
  return {from, std::min(colon, slash)};
}

std::uint32_t port_of_rank(const config::RanksConfig& ranks, std::uint64_t rank,
                           std::uint32_t base) {
  switch (ranks.behind) {
    case config::RanksConfig::Behind::kOnePort: return base;
    case config::RanksConfig::Behind::kConsecutivePorts:
      return base == 0 ? 0 : base + static_cast<std::uint32_t>(rank);
    case config::RanksConfig::Behind::kListedPorts: return ranks.ports[rank];
  }
  return base;
}

}  // namespace

std::uint32_t port_of(const std::string& address) {
  std::size_t at = host_of(address).to;
  if (at >= address.size() || address[at] != ':') return 0;
  std::uint32_t port = 0;
  for (++at; at < address.size() && address[at] >= '0' && address[at] <= '9'; ++at) {
    port = port * 10 + static_cast<std::uint32_t>(address[at] - '0');
    if (port > kPortMax) return 0;
  }
  return port;
}

std::string with_port(const std::string& address, std::uint32_t port) {
  const std::size_t to = host_of(address).to;
  const std::size_t rest = address.find('/', to);
  return address.substr(0, to) + ":" + std::to_string(port) +
         (rest == std::string::npos ? "" : address.substr(rest));
}

std::vector<endpoints::EndpointSpec> expand_ranks(const std::vector<endpoints::EndpointSpec>& specs,
                                                  const config::RanksConfig& ranks) {
  const bool one_port = ranks.behind == config::RanksConfig::Behind::kOnePort;
  const std::uint64_t count = ranks.as == config::RanksConfig::As::kOne ? 1 : ranks.count;
  std::vector<endpoints::EndpointSpec> expanded;
  expanded.reserve(specs.size() * count);
  for (const endpoints::EndpointSpec& spec : specs) {
    const std::uint32_t base = port_of(spec.address);
    for (std::uint64_t rank = 0; rank < count; ++rank) {
      endpoints::EndpointSpec& one = expanded.emplace_back(spec);
      if (rank != 0) one.name += "-rank-" + std::to_string(rank);
      if (!one_port) {
        const std::uint32_t port = port_of_rank(ranks, rank, base);
        if (port >= 1 && port <= kPortMax) one.address = with_port(spec.address, port);
        // A page that was named is that of the port named there; the others' are beside it.
        const bool own_pages = spec.metrics_url.empty() || port_of(spec.metrics_url) == base;
        if (!spec.metrics_url.empty() && own_pages && port != 0)
          one.metrics_url = with_port(spec.metrics_url, port);
        if (ranks.as == config::RanksConfig::As::kOne && own_pages) {
          for (std::uint64_t more = 1; more < ranks.count; ++more) {
            const std::uint32_t other = port_of_rank(ranks, more, base);
            if (other >= 1 && other <= kPortMax)
              one.more_ports.push_back(static_cast<std::uint16_t>(other));
          }
        }
      } else if (ranks.as == config::RanksConfig::As::kEndpoints && count > 1) {
        one.rank = static_cast<std::uint32_t>(rank);
      }
    }
  }
  return expanded;
}

}  // namespace pickd::discovery

// `pools:`: pools with their endpoints, the ranks of these, and where more are found.
#include <algorithm>
#include <unordered_map>

#include "abi/limits.hpp"
#include "daemon/config/map_reader.hpp"
#include "daemon/config/sections.hpp"

namespace pickd::config {
namespace {

constexpr std::size_t kNameBytesMax = abi::kEndpointNameBytesMax;
constexpr std::uint64_t kRanksMax = 256;
constexpr std::uint64_t kPortMax = 65535;
constexpr std::uint64_t kTtlMinMs = 1'000;
constexpr std::uint64_t kTtlMaxMs = 30'000;
constexpr std::uint64_t kDnsTimeoutMs = 5'000;
constexpr std::size_t kDnsNameBytesMax = 253;
constexpr std::size_t kServersMax = 8;
constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";
const std::vector<std::string> kDnsTypes = {"a", "aaaa", "both", "srv"};  // in the order of Type

std::uint64_t whole_port(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 5 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const std::uint64_t port = digits ? std::stoul(text) : 0;
  return port <= kPortMax ? port : 0;
}

std::vector<std::uint32_t> read_ports(MapReader& read) {
  std::vector<std::uint32_t> ports;
  for (const std::string& text : read.text_list("ports", kRanksMax, 16)) {
    const std::uint64_t port = whole_port(text);
    if (port == 0) {
      read.refuse("ports",
                  "must be numbers from 1 to 65535, such as [8000, 8001]; one is " + shown(text));
    } else if (std::find(ports.begin(), ports.end(), port) != ports.end()) {
      read.refuse("ports", "names port " + text + " twice; each rank has its own");
    } else {
      ports.push_back(static_cast<std::uint32_t>(port));
    }
  }
  return ports;
}

RanksConfig read_ranks(MapReader read) {
  RanksConfig ranks;
  const bool listed = read.has("ports");
  ranks.ports = read_ports(read);
  ranks.count = read.integer("count", 1, 1, kRanksMax);
  const std::string behind = read.choice("behind", "one-port", {"one-port", "consecutive-ports"});
  ranks.as = read.choice("as", "endpoints", {"endpoints", "one"}) == "one"
                 ? RanksConfig::As::kOne
                 : RanksConfig::As::kEndpoints;
  if (listed) {
    if (read.has("count") || read.has("behind"))
      read.refuse("ports", "says how many ranks there are and where; remove count and behind");
    if (ranks.ports.empty()) read.refuse("ports", "needs at least one port, such as [8000, 8001]");
    ranks.behind = RanksConfig::Behind::kListedPorts;
    ranks.count = ranks.ports.size();
  } else {
    if (!read.has("count"))
      read.refuse("", "needs ports, such as [8000, 8001], or count, such as 4");
    if (behind == "consecutive-ports") ranks.behind = RanksConfig::Behind::kConsecutivePorts;
  }
  read.finish();
  return ranks;
}

// From the directory of the file that names it, as schedulingConfigFile is.
std::string beside(const std::string& path, const Place& place) {
  if (path.empty() || path[0] == '/' || !place.source) return path;
  const std::size_t slash = place.source->rfind('/');
  return slash == std::string::npos ? path : place.source->substr(0, slash + 1) + path;
}

DnsDiscoveryConfig read_dns(MapReader read) {
  DnsDiscoveryConfig dns;
  dns.name = read.required_text("name", 1, kDnsNameBytesMax);
  const std::string type = read.choice("type", "a", kDnsTypes);
  dns.type = static_cast<DnsDiscoveryConfig::Type>(
      std::find(kDnsTypes.begin(), kDnsTypes.end(), type) - kDnsTypes.begin());
  const bool srv = dns.type == DnsDiscoveryConfig::Type::kSrv;
  dns.port = read.integer("port", 0, 1, kPortMax);
  if (srv && read.has("port"))
    read.refuse("port", "SRV records bring their ports; remove it, or set type to a");
  if (!srv && !read.has("port")) {
    read.refuse("port", "is missing; type " + type +
                            " finds addresses only, so say which port "
                            "the engines listen on, such as 8000");
  }
  dns.servers = read.text_list("servers", kServersMax, 64);
  dns.ttl_min_ms = read.duration_ms("ttl_min", kTtlMinMs, 100, 86'400'000);
  dns.ttl_max_ms =
      read.duration_ms("ttl_max", std::max(kTtlMaxMs, dns.ttl_min_ms), 100, 86'400'000);
  if (dns.ttl_max_ms < dns.ttl_min_ms) read.refuse("ttl_max", "must not be less than ttl_min");
  dns.timeout_ms = read.duration_ms("timeout", kDnsTimeoutMs, 100, 60'000);
  read.finish();
  return dns;
}

KubernetesDiscoveryConfig read_kubernetes(MapReader read) {
  KubernetesDiscoveryConfig kubernetes;
  kubernetes.service = read.text("service", "", 1, kDnsNameBytesMax);
  kubernetes.inference_pool = read.text("inference_pool", "", 1, kDnsNameBytesMax);
  if (kubernetes.service.empty() == kubernetes.inference_pool.empty()) {
    read.refuse("",
                "needs either service, whose EndpointSlices are watched, or inference_pool, "
                "whose pods are");
  }
  kubernetes.name_space = read.text("namespace", "", 1, 63);
  kubernetes.port = read.text("port", "", 1, 63);
  if (!kubernetes.inference_pool.empty() && read.has("port"))
    read.refuse("port", "an InferencePool says its target ports itself; remove it");
  kubernetes.labels = read.text_map("labels", abi::kEndpointLabelsMax, 253);
  kubernetes.api_server = read.text("api_server", "", 1, 255);
  if (!kubernetes.api_server.empty() && !kubernetes.api_server.starts_with("https://") &&
      !kubernetes.api_server.starts_with("http://")) {
    read.refuse("api_server",
                "must be a URL, such as https://10.96.0.1:443; is " + shown(kubernetes.api_server));
  }
  const std::string account = kServiceAccount;
  kubernetes.token_file = read.text("token_file", account + "token", 0, 4095);
  kubernetes.ca_file = read.text("ca_file", account + "ca.crt", 0, 4095);
  kubernetes.namespace_file = read.text("namespace_file", account + "namespace", 0, 4095);
  read.finish();
  return kubernetes;
}

DiscoveryConfig read_discovery(MapReader read, const Place& place) {
  DiscoveryConfig discovery;
  discovery.place = place;
  const int given = read.has("file") + read.has("dns") + read.has("kubernetes");
  if (given != 1) {
    read.refuse("", given == 0 ? "needs one source: file, dns or kubernetes"
                               : "has several sources; a pool has one of file, dns, kubernetes");
  }
  const std::string path = read.text("file", "", 1, 4095);
  if (!path.empty()) discovery.file = FileDiscoveryConfig{beside(path, read.place_of("file"))};
  if (read.has("dns")) discovery.dns = read_dns(read.map("dns"));
  if (read.has("kubernetes")) discovery.kubernetes = read_kubernetes(read.map("kubernetes"));
  const std::vector<std::string> roles = {role_name(Role::kBoth), role_name(Role::kDecode),
                                          role_name(Role::kPrefill), role_name(Role::kEncode)};
  discovery.role = static_cast<Role>(
      std::find(roles.begin(), roles.end(), read.choice("role", "both", roles)) - roles.begin());
  discovery.labels = read.text_map("labels", abi::kEndpointLabelsMax, abi::kAttributeBytesMax);
  discovery.capacity_tokens = read_capacity_tokens(read);
  (void)read.tree("file");
  (void)read.tree("dns");
  (void)read.tree("kubernetes");
  read.finish();
  return discovery;
}

}  // namespace

const std::vector<ItemKey>& pool_keys() {
  static const std::vector<ItemKey> keys = {
      {"name", "1 to 127 bytes", "", "Unique among the pools."},
      {"models", "list, at most 64", "empty: any", "For its endpoints that list none themselves."},
      {"endpoints", "list", "empty", "Entries as under `endpoints:`, without `pool`."},
      {"ranks", "map, see below", "one rank", "The data-parallel ranks of each of its engines."},
      {"discovery", "map, see below", "none", "Where more of its endpoints are found."},
  };
  return keys;
}

const std::vector<ItemKey>& ranks_keys() {
  static const std::vector<ItemKey> keys = {
      {"ports", "list of 1 to 65535, at most 256", "none",
       "The port of each rank, in their order; in place of `count` and `behind`."},
      {"count", "1 to 256", "", "How many ranks there are."},
      {"behind", "one-port, consecutive-ports", "one-port",
       "One port that all ranks share, or one port each, counted up from the endpoint's."},
      {"as", "endpoints, one", "endpoints",
       "Each rank an endpoint of its own (the first keeps the name, the others get `-rank-1` and "
       "so "
       "on), or one endpoint for them all, at the first port, with the load of all ports "
       "together."},
  };
  return keys;
}

const std::vector<ItemKey>& discovery_keys() {
  static const std::vector<ItemKey> keys = {
      {"file", "1 to 4095 bytes", "",
       "A YAML or JSON file with `endpoints:`, or a directory of such files; watched. Relative to "
       "this file's directory."},
      {"dns", "map, see below", "", "A name whose A, AAAA or SRV records are the endpoints."},
      {"kubernetes", "map, see below", "",
       "A service's EndpointSlices or an InferencePool's pods."},
      {"role", "both, decode, prefill, encode", "both", "Of found endpoints that say none."},
      {"labels", "map, at most 64", "empty", "Added to what a found endpoint says itself."},
      {"capacity_tokens", "0 or 1024 to 1000000000", "0: state.capacity_tokens",
       "Of found endpoints that say none."},
  };
  return keys;
}

const std::vector<ItemKey>& dns_keys() {
  static const std::vector<ItemKey> keys = {
      {"name", "1 to 253 bytes", "", "Tried with the search domains of resolv.conf."},
      {"type", "a, aaaa, both, srv", "a", "Which records; `both` asks for A and AAAA."},
      {"port", "1 to 65535", "", "The engines' port; not with `srv`, whose records bring theirs."},
      {"servers", "list of addresses, at most 8", "those of resolv.conf",
       "As `10.96.0.10:53`. Names are then taken as they are, without search domains."},
      {"ttl_min", "100ms to 24h", "1s", "Asked again after the TTL, but not sooner than this."},
      {"ttl_max", "100ms to 24h, at least ttl_min", "30s", "Nor later than this."},
      {"timeout", "100ms to 1min", "5s",
       "An answer that takes longer counts as a failure, which leaves the endpoints as they are."},
  };
  return keys;
}

const std::vector<ItemKey>& kubernetes_keys() {
  static const std::vector<ItemKey> keys = {
      {"service", "1 to 253 bytes", "", "Its EndpointSlices are watched."},
      {"inference_pool", "1 to 253 bytes", "",
       "An InferencePool; it and the pods that it selects are watched."},
      {"namespace", "1 to 63 bytes", "that of the service account", "Where they are."},
      {"port", "1 to 63 bytes", "the first of a slice",
       "Of `service`: the port's name or number in the EndpointSlices."},
      {"labels", "map, at most 64", "empty", "Further labels that the slices or pods must have."},
      {"api_server", "a URL", "as $KUBERNETES_SERVICE_HOST says", "The API server."},
      {"token_file", "0 to 4095 bytes", "that of the service account",
       "Bearer token, read again when it changes; empty: none is sent."},
      {"ca_file", "0 to 4095 bytes", "that of the service account",
       "The certificates that sign the API server's; empty: the system's."},
      {"namespace_file", "0 to 4095 bytes", "that of the service account",
       "Where the namespace is read when none is given."},
  };
  return keys;
}

void read_pools(const Node& list, const Place& place, std::vector<EndpointConfig>& endpoints,
                std::vector<PoolConfig>& pools, Errors& errors) {
  const std::vector<Tree>& entries = list_entries(list, place, "pools", errors);
  std::unordered_map<std::string, Place> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string key = "pools[" + std::to_string(i) + "]";
    MapReader read(entries[i].get(), key, entries[i]->place, errors);
    PoolConfig pool;
    pool.place = entries[i]->place;
    pool.name = read.required_text("name", 1, kNameBytesMax);
    const auto [first, added] = seen.emplace(pool.name, read.place_of("name"));
    if (!added && !pool.name.empty()) {
      read.refuse("name",
                  "the pool " + shown(pool.name) + " is there already, at " + first->second.text());
    }
    pool.models = read.text_list("models", abi::kEndpointModelsMax, abi::kModelBytesMax);
    const auto items = read.list("endpoints", abi::kEndpointIdsMax);
    for (std::size_t j = 0; j < items.size(); ++j) {
      EndpointConfig endpoint = read_endpoint(
          *items[j], key + ".endpoints[" + std::to_string(j) + "]", &pool.name, errors);
      if (endpoint.models.empty()) endpoint.models = pool.models;
      endpoints.push_back(std::move(endpoint));
    }
    if (read.tree("ranks")) pool.ranks = read_ranks(read.map("ranks"));
    if (read.tree("discovery"))
      pool.discovery = read_discovery(read.map("discovery"), read.place_of("discovery"));
    read.finish();
    if (pool.ranks || pool.discovery) pools.push_back(std::move(pool));
  }
}

}  // namespace pickd::config

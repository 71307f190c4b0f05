// print_config: the configuration in force, as YAML that loads to the same again.
#include <algorithm>

#include "daemon/config/load.hpp"
#include "daemon/config/sections.hpp"
#include "daemon/config/settings.hpp"

namespace pickd::config {
namespace {

std::string comment(const Place& place) {
  std::string text = place.text();
  // A line break in a file's name must not end the comment.
  std::replace_if(
      text.begin(), text.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < 0x20; }, '?');
  return "  # " + text + "\n";
}

std::string print_list(const std::vector<std::string>& words) {
  std::string out = "[";
  for (const std::string& word : words) out += (out.size() > 1 ? ", " : "") + format_text(word);
  return out + "]";
}

// In flow style, on one line.
std::string print_tree(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::kNull: return "null";
    case Node::Kind::kScalar: return node.quoted ? format_text(node.scalar) : node.scalar;
    case Node::Kind::kList:
      for (const Tree& item : node.items) out += (out.empty() ? "" : ", ") + print_tree(*item);
      return "[" + out + "]";
    case Node::Kind::kMap:
      for (const Entry& entry : node.entries) {
        out += (out.empty() ? "" : ", ") + format_text(entry.key) + ": " + print_tree(*entry.value);
      }
      return "{" + out + "}";
  }
  return out;
}

std::string print_plugins(const SchedulingConfig& scheduling) {
  std::string out;
  if (!scheduling.detector.empty())
    out += "  saturationDetector: {pluginRef: " + format_text(scheduling.detector) + "}" +
           comment(scheduling.detector_place);
  if (scheduling.detector_parameters)
    out += "  saturationDetector: " + print_tree(*scheduling.detector_parameters) +
           comment(scheduling.detector_place);
  if (scheduling.plugins.empty() && scheduling.profiles.empty()) return out;
  out += "  plugins:\n";
  for (const PluginConfig& plugin : scheduling.plugins) {
    out += "    - type: " + format_text(plugin.type) + comment(plugin.place);
    out += "      name: " + format_text(plugin.name) + "\n";
    if (plugin.parameters) out += "      parameters: " + print_tree(*plugin.parameters) + "\n";
  }
  const bool implied = scheduling.profiles.size() == 1 && scheduling.profiles[0].implied;
  if (implied) return out;
  out += "  schedulingProfiles:\n";
  for (const ProfileConfig& profile : scheduling.profiles) {
    out += "    - name: " + format_text(profile.name) + comment(profile.place);
    out += "      plugins:\n";
    for (const PluginUse& use : profile.plugins) {
      out += "        - pluginRef: " + format_text(use.plugin_ref) + comment(use.place);
      if (use.weight) out += "          weight: " + format_number(*use.weight) + "\n";
    }
  }
  return out;
}

std::string print_labels(const std::vector<std::pair<std::string, std::string>>& labels) {
  std::string out;
  for (const auto& [key, value] : labels) {
    out += (out.empty() ? "" : ", ") + format_text(key) + ": " + format_text(value);
  }
  return "{" + out + "}";
}

std::string print_endpoints(const std::vector<EndpointConfig>& endpoints) {
  if (endpoints.empty()) return "\nendpoints: []\n";
  std::string out = "\nendpoints:\n";
  for (const EndpointConfig& endpoint : endpoints) {
    out += "  - name: " + format_text(endpoint.name) + comment(endpoint.place);
    out += "    address: " + format_text(endpoint.address) + "\n";
    out += "    pool: " + format_text(endpoint.pool) + "\n";
    out += std::string("    role: ") + role_name(endpoint.role) + "\n";
    out += "    models: " + print_list(endpoint.models) + "\n";
    out += "    capacity_tokens: " + std::to_string(endpoint.capacity_tokens) + "\n";
    if (!endpoint.metrics_url.empty())
      out += "    metrics_url: " + format_text(endpoint.metrics_url) + "\n";
    if (!endpoint.engine.empty()) out += "    engine: " + format_text(endpoint.engine) + "\n";
    if (endpoint.rank) out += "    rank: " + std::to_string(*endpoint.rank) + "\n";
    out += "    labels: " + print_labels(endpoint.labels) + "\n";
  }
  return out;
}

std::string print_ranks(const RanksConfig& ranks) {
  std::string out = "    ranks: {";
  if (ranks.behind == RanksConfig::Behind::kListedPorts) {
    for (const std::uint32_t port : ranks.ports)
      out += (out.ends_with('{') ? "ports: [" : ", ") + std::to_string(port);
    out += "]";
  } else {
    const bool one_port = ranks.behind == RanksConfig::Behind::kOnePort;
    out += "count: " + std::to_string(ranks.count) +
           ", behind: " + (one_port ? "one-port" : "consecutive-ports");
  }
  return out + ", as: " + (ranks.as == RanksConfig::As::kOne ? "one" : "endpoints") + "}\n";
}

std::string print_dns(const DnsDiscoveryConfig& dns) {
  static const char* const kTypes[] = {"a", "aaaa", "both", "srv"};
  constexpr std::uint64_t kMsInNs = 1'000'000;
  std::string out = "      dns:\n        name: " + format_text(dns.name) + "\n";
  out += std::string("        type: ") + kTypes[static_cast<std::size_t>(dns.type)] + "\n";
  if (dns.port != 0) out += "        port: " + std::to_string(dns.port) + "\n";
  out += "        servers: " + print_list(dns.servers) + "\n";
  out += "        ttl_min: " + format_duration(dns.ttl_min_ms * kMsInNs) + "\n";
  out += "        ttl_max: " + format_duration(dns.ttl_max_ms * kMsInNs) + "\n";
  return out + "        timeout: " + format_duration(dns.timeout_ms * kMsInNs) + "\n";
}

std::string print_kubernetes(const KubernetesDiscoveryConfig& kubernetes) {
  std::string out = "      kubernetes:\n";
  const auto add = [&out](const char* key, const std::string& value, bool always) {
    if (always || !value.empty())
      out += std::string("        ") + key + ": " + format_text(value) + "\n";
  };
  add("service", kubernetes.service, false);
  add("inference_pool", kubernetes.inference_pool, false);
  add("namespace", kubernetes.name_space, false);
  add("port", kubernetes.port, false);
  add("api_server", kubernetes.api_server, false);
  add("token_file", kubernetes.token_file, true);
  add("ca_file", kubernetes.ca_file, true);
  add("namespace_file", kubernetes.namespace_file, true);
  return out + "        labels: " + print_labels(kubernetes.labels) + "\n";
}

std::string print_discovery(const DiscoveryConfig& discovery) {
  std::string out = "    discovery:" + comment(discovery.place);
  if (discovery.file) out += "      file: " + format_text(discovery.file->path) + "\n";
  if (discovery.dns) out += print_dns(*discovery.dns);
  if (discovery.kubernetes) out += print_kubernetes(*discovery.kubernetes);
  out += std::string("      role: ") + role_name(discovery.role) + "\n";
  out += "      labels: " + print_labels(discovery.labels) + "\n";
  return out + "      capacity_tokens: " + std::to_string(discovery.capacity_tokens) + "\n";
}

// Their endpoints stand under `endpoints:` already.
std::string print_pools(const std::vector<PoolConfig>& pools) {
  std::string out = pools.empty() ? "" : "\npools:\n";
  for (const PoolConfig& pool : pools) {
    out += "  - name: " + format_text(pool.name) + comment(pool.place);
    out += "    models: " + print_list(pool.models) + "\n";
    if (pool.ranks) out += print_ranks(*pool.ranks);
    if (pool.discovery) out += print_discovery(*pool.discovery);
  }
  return out;
}

}  // namespace

std::string print_config(const Loaded& loaded) {
  Config config = loaded.config;
  std::string out;
  for (const Section& section : sections()) {
    out += (out.empty() ? "" : "\n") + section.name + ":\n";
    for (const Setting& setting : settings()) {
      if (setting.section() != section.name) continue;
      const auto origin = loaded.origins.find(setting.key);
      const Place place = origin == loaded.origins.end() ? Place{} : origin->second;
      const bool absent =
          setting.is_list() && place.source == nullptr;  // its default has no notation
      out += (absent ? "  # " : "  ") + setting.name() + ": " +
             (absent ? setting.absent : print_setting(setting, config)) + comment(place);
    }
    if (section.name == "scrape") out += print_engines(config.scrape.engines);
    if (section.name == "scheduling") {
      if (!config.scheduling.file.empty()) {
        out += "  # schedulingConfigFile: " + format_text(config.scheduling.file) +
               comment(loaded.origins.at("schedulingConfigFile"));
      }
      out += print_plugins(config.scheduling);
    }
  }
  return out + print_endpoints(config.endpoints) + print_pools(config.pools);
}

}  // namespace pickd::config

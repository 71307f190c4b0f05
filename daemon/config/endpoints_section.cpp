// `endpoints:`: the static endpoints of the file, and how one entry is read, wherever it stands.
#include <algorithm>
#include <unordered_map>

#include "abi/limits.hpp"
#include "daemon/config/address.hpp"
#include "daemon/config/map_reader.hpp"
#include "daemon/config/sections.hpp"

namespace pickd::config {
namespace {

constexpr std::size_t kNameBytesMax = abi::kEndpointNameBytesMax;
constexpr std::uint64_t kCapacityTokensMin = 1024;
constexpr std::uint64_t kCapacityTokensMax = 1'000'000'000;
const std::vector<std::string> kRoles = {"both", "decode", "prefill",
                                         "encode"};  // in the order of Role

Role role_of(const std::string& name) {
  return static_cast<Role>(std::find(kRoles.begin(), kRoles.end(), name) - kRoles.begin());
}

}  // namespace

const std::vector<ItemKey>& endpoint_keys() {
  static const std::vector<ItemKey> keys = {
      {"name", "1 to 127 bytes", "",
       "Unique among all endpoints; names it in subset hints, reports and logs."},
      {"address", "1 to 127 bytes", "", "`host:port` or a URL; handed to gateways as it is."},
      {"pool", "1 to 127 bytes", "default",
       "The pool it belongs to; not under `pools:`, where its place says it."},
      {"role", "both, decode, prefill, encode", "both", "What it does of a request."},
      {"models", "list, at most 64", "empty: any", "The models it serves."},
      {"labels", "map, at most 64", "empty", "Keys and values for label filters."},
      {"metrics_url", "0 to 255 bytes", "empty: `http://<address>/metrics`",
       "Where its metrics are read, with http:// or https://."},
      {"engine", "0 to 63 bytes", "empty: detected",
       "Whose metrics these are, such as vllm or sglang."},
      {"rank", "0 to 1023", "none",
       "Its data-parallel rank, where several endpoints share one metrics page."},
      {"capacity_tokens", "0 or 1024 to 1000000000", "0: state.capacity_tokens",
       "Its KV cache, in tokens."},
  };
  return keys;
}

const char* role_name(Role role) { return kRoles[static_cast<std::size_t>(role)].c_str(); }

const std::vector<Tree>& list_entries(const Node& list, const Place& place, const std::string& key,
                                      Errors& errors) {
  static const std::vector<Tree> none;
  if (list.is_list()) return list.items;
  if (!list.is_null()) errors.add(place, key, "must be a list (`- name: ...`)");
  return none;
}

std::uint64_t read_capacity_tokens(MapReader& read) {
  if (read.integer("capacity_tokens", 0, 0, kCapacityTokensMax) == 0) return 0;
  return read.integer("capacity_tokens", 0, kCapacityTokensMin, kCapacityTokensMax);
}

EndpointConfig read_endpoint(const Node& node, const std::string& key, const std::string* pool,
                             Errors& errors) {
  MapReader read(&node, key, node.place, errors);
  EndpointConfig endpoint;
  endpoint.place = node.place;
  endpoint.name = read.required_text("name", 1, kNameBytesMax);
  endpoint.address = read.required_text("address", 1, abi::kEndpointAddressBytesMax);
  const std::string mistake = endpoint.address.empty() ? "" : address_mistake(endpoint.address);
  if (!mistake.empty()) read.refuse("address", mistake + "; is " + shown(endpoint.address));
  endpoint.role = role_of(read.choice("role", "both", kRoles));
  endpoint.models = read.text_list("models", abi::kEndpointModelsMax, abi::kModelBytesMax);
  endpoint.labels = read.text_map("labels", abi::kEndpointLabelsMax, abi::kAttributeBytesMax);
  endpoint.capacity_tokens = read_capacity_tokens(read);
  endpoint.metrics_url = read.text("metrics_url", "", 0, abi::kMetricsUrlBytesMax);
  const std::string url_mistake = metrics_url_mistake(endpoint.metrics_url);
  if (!url_mistake.empty())
    read.refuse("metrics_url", url_mistake + "; is " + shown(endpoint.metrics_url));
  endpoint.engine = read.text("engine", "", 0, abi::kEngineBytesMax);
  if (read.has("rank")) {
    endpoint.rank = static_cast<std::uint32_t>(read.integer("rank", 0, 0, abi::kRankMax));
  }
  if (pool == nullptr) {
    endpoint.pool = read.text("pool", "default", 1, kNameBytesMax);
  } else {
    if (!read.text("pool", "").empty())
      read.refuse("pool", "the pool is " + shown(*pool) + ", by its place; remove it");
    endpoint.pool = *pool;
  }
  read.finish();
  return endpoint;
}

void read_endpoints(const Node& list, const Place& place, std::vector<EndpointConfig>& endpoints,
                    Errors& errors) {
  const std::vector<Tree>& items = list_entries(list, place, "endpoints", errors);
  for (std::size_t i = 0; i < items.size(); ++i) {
    endpoints.push_back(
        read_endpoint(*items[i], "endpoints[" + std::to_string(i) + "]", nullptr, errors));
  }
}

void check_endpoints(const std::vector<EndpointConfig>& endpoints, std::uint64_t endpoints_max,
                     Errors& errors) {
  std::unordered_map<std::string, Place> seen;
  for (const EndpointConfig& endpoint : endpoints) {
    const auto [first, added] = seen.emplace(endpoint.name, endpoint.place);
    if (!added && !endpoint.name.empty()) {
      errors.add(endpoint.place, "endpoints",
                 "the name " + shown(endpoint.name) + " is taken by the endpoint at " +
                     first->second.text());
    }
  }
  if (endpoints.size() > endpoints_max) {
    errors.add(endpoints[endpoints_max].place, "endpoints",
               "there are " + std::to_string(endpoints.size()) + "; state.endpoints_max allows " +
                   std::to_string(endpoints_max));
  }
}

}  // namespace pickd::config

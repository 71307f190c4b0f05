#include "daemon/discovery/kubernetes/objects.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "abi/limits.hpp"
#include "daemon/discovery/ranks.hpp"

namespace pickd::discovery::kubernetes {

namespace {

using nlohmann::json;

constexpr std::size_t kPrintedBytes = 300;
constexpr std::uint64_t kPortMax = 65535;
constexpr std::size_t kPortsMax = 64;
constexpr const char* kRoleLabel = "llm-d.ai/role";

bool flag_at(const json& object, const char* key, bool absent) {
  const json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : absent;
}

const json& list_at(const json& object, const char* key) {
  static const json none = json::array();
  const json* value = member(object, key);
  return value != nullptr && value->is_array() ? *value : none;
}

std::uint32_t port_at(const json& object, const char* key) {
  const std::uint64_t port = number_at(object, key);
  return port <= kPortMax ? static_cast<std::uint32_t>(port) : 0;
}

Labels labels_of(const json* map) {
  Labels labels;
  if (map == nullptr || !map->is_object()) return labels;
  for (const auto& [key, value] : map->items()) {
    if (labels.size() < abi::kEndpointLabelsMax && value.is_string())
      labels.emplace_back(key, value.get<std::string>());
  }
  return labels;
}

std::string at_port(const std::string& host, std::uint32_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

std::uint32_t port_of_slice(const json& slice, const std::string& wanted) {
  if (is_number(wanted)) return static_cast<std::uint32_t>(std::stoul(wanted));
  for (const json& port : list_at(slice, "ports")) {
    if (wanted.empty() || text_at(port, "name") == wanted) return port_at(port, "port");
  }
  return 0;
}

void add_label(endpoints::EndpointSpec& spec, const char* key, const std::string& value) {
  if (!value.empty() && spec.labels.size() < abi::kEndpointLabelsMax)
    spec.labels.emplace_back(key, value);
}

abi::Role role_of(const Labels& labels) {
  for (const auto& [key, value] : labels) {
    if (key != kRoleLabel) continue;
    if (value == "prefill") return abi::Role::kPrefill;
    if (value == "decode") return abi::Role::kDecode;
    if (value == "encode") return abi::Role::kEncode;
  }
  return abi::Role::kBoth;
}

}  // namespace

const json* member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

std::string text_at(const json& object, const char* key, const char* below) {
  const json* value = member(object, key);
  if (value != nullptr && below != nullptr) value = member(*value, below);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::uint64_t number_at(const json& object, const char* key) {
  const json* value = member(object, key);
  return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>() : 0;
}

std::string encoded(std::string_view text) {
  static const char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '.' || byte == '_' ||
                       byte == '~';
    if (plain) {
      out += letter;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kPrintedBytes));
  std::replace_if(
      out.begin(), out.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F; }, ' ');
  return out;
}

std::string name_of(const json& object) { return text_at(object, "metadata", "name"); }

Slice read_slice(const json& object, const std::string& port) {
  Slice slice;
  slice.name = name_of(object);
  slice.ipv6 = text_at(object, "addressType") == "IPv6";
  const std::uint32_t number = port_of_slice(object, port);
  const json& list = list_at(object, "endpoints");
  slice.port_missing = number == 0 && !list.empty();
  if (number == 0) return slice;
  for (const json& endpoint : list) {
    const json& addresses = list_at(endpoint, "addresses");
    if (addresses.empty() || !addresses[0].is_string()) continue;
    endpoints::EndpointSpec spec;
    spec.address = at_port(addresses[0].get<std::string>(), number);  // all stand for the same
    const json* target = member(endpoint, "targetRef");
    if (target != nullptr && text_at(*target, "kind") == "Pod") {
      spec.name = text_at(*target, "name");
      spec.incarnation = text_at(*target, "uid");
    }
    if (spec.name.empty()) spec.name = spec.address;
    const json* conditions = member(endpoint, "conditions");
    // Absent means true for `ready`, false for `terminating`. `serving` is ready without regard to
    // terminating: a pod that ends and still serves keeps its requests and gets no new ones.
    const bool ready = conditions == nullptr || flag_at(*conditions, "ready", true);
    const bool ending = conditions != nullptr && flag_at(*conditions, "terminating", false);
    spec.draining = !ready || ending;
    add_label(spec, "topology.kubernetes.io/zone", text_at(endpoint, "zone"));
    add_label(spec, "kubernetes.io/hostname", text_at(endpoint, "nodeName"));
    slice.endpoints.push_back(std::move(spec));
  }
  return slice;
}

std::vector<endpoints::EndpointSpec> join_slices(const std::vector<const Slice*>& slices) {
  std::vector<const Slice*> ordered = slices;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Slice* a, const Slice* b) { return a->ipv6 < b->ipv6; });
  std::vector<endpoints::EndpointSpec> set;
  std::unordered_map<std::string, std::size_t> places;
  for (const Slice* slice : ordered) {
    for (const endpoints::EndpointSpec& spec : slice->endpoints) {
      const auto [at, added] = places.emplace(spec.name, set.size());
      if (added) {
        set.push_back(spec);
      } else if (set[at->second].draining == true && spec.draining == false) {
        set[at->second] = spec;
      }
    }
  }
  std::sort(set.begin(), set.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return set;
}

InferencePool read_inference_pool(const json& object) {
  InferencePool pool;
  const json* spec = member(object, "spec");
  if (spec == nullptr) return pool;
  if (const json* selector = member(*spec, "selector"); selector != nullptr) {
    const json* labels = member(*selector, "matchLabels");
    pool.selector = labels_of(labels != nullptr ? labels : selector);
  }
  for (const json& port : list_at(*spec, "targetPorts")) {
    const std::uint32_t number = port_at(port, "number");
    if (number != 0 && pool.ports.size() < kPortsMax) pool.ports.push_back(number);
  }
  if (const std::uint32_t port = port_at(*spec, "targetPortNumber");
      port != 0 && pool.ports.empty())
    pool.ports.push_back(port);
  return pool;
}

Pod read_pod(const json& object) {
  Pod pod;
  const json* metadata = member(object, "metadata");
  const json* spec = member(object, "spec");
  const json* status = member(object, "status");
  if (metadata == nullptr || status == nullptr) return pod;
  pod.name = name_of(object);
  pod.uid = text_at(*metadata, "uid");
  pod.labels = labels_of(member(*metadata, "labels"));
  const std::string phase = text_at(*status, "phase");
  if (phase != "Succeeded" && phase != "Failed") pod.address = text_at(*status, "podIP");
  bool ready = false;
  for (const json& condition : list_at(*status, "conditions")) {
    if (text_at(condition, "type") == "Ready") ready = text_at(condition, "status") == "True";
  }
  const bool ending = !text_at(*metadata, "deletionTimestamp").empty();
  pod.draining = !ready || ending;
  if (spec == nullptr) return pod;
  pod.node = text_at(*spec, "nodeName");
  for (const json& container : list_at(*spec, "containers")) {
    Pod::Container& one = pod.containers.emplace_back();
    for (const json& port : list_at(container, "ports")) {
      if (one.ports.size() < kPortsMax) one.ports.push_back(port_at(port, "containerPort"));
    }
    const std::string name = text_at(container, "name");
    for (const json& state : list_at(*status, "containerStatuses")) {
      if (text_at(state, "name") == name) one.restarts = number_at(state, "restartCount");
    }
  }
  return pod;
}

std::vector<endpoints::EndpointSpec> endpoints_of(const Pod& pod,
                                                  const std::vector<std::uint32_t>& ports) {
  if (pod.name.empty() || pod.address.empty() || ports.empty()) return {};
  endpoints::EndpointSpec spec;
  spec.name = pod.name;
  spec.address = at_port(pod.address, ports[0]);
  spec.draining = pod.draining;
  spec.labels = pod.labels;
  spec.role = role_of(pod.labels);
  add_label(spec, "kubernetes.io/hostname", pod.node);
  std::uint64_t restarts = 0;
  for (const Pod::Container& container : pod.containers) {
    const bool serves = pod.containers.size() == 1 ||
                        std::any_of(ports.begin(), ports.end(), [&](std::uint32_t port) {
                          return std::find(container.ports.begin(), container.ports.end(), port) !=
                                 container.ports.end();
                        });
    if (serves) restarts += container.restarts;
  }
  spec.incarnation = pod.uid + "/" + std::to_string(restarts);
  config::RanksConfig ranks;
  ranks.behind = config::RanksConfig::Behind::kListedPorts;
  ranks.ports = ports;
  ranks.count = ports.size();
  return expand_ranks({spec}, ranks);
}

}  // namespace pickd::discovery::kubernetes

// Objects: EndpointSlices, pods and InferencePools of the Kubernetes API as facts. Pure; every
// field may be missing or of another type, which reads as absent.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/endpoints/endpoint_spec.hpp"

namespace pickd::discovery::kubernetes {

using Labels = std::vector<std::pair<std::string, std::string>>;

// ---- Reading JSON of any shape ------------------------------------------------------------------

// The member of an object; nullptr when there is none.
const nlohmann::json* member(const nlohmann::json& object, const char* key);
// A string below one or two keys; empty when there is none.
std::string text_at(const nlohmann::json& object, const char* key, const char* below = nullptr);
// A whole number from 0 on; 0 when there is none.
std::uint64_t number_at(const nlohmann::json& object, const char* key);
// For a query: everything but letters, digits and -._~ as %XX.
std::string encoded(std::string_view text);
// At most 300 bytes, control characters as spaces: for the log.
std::string printable(std::string_view text);

std::string name_of(const nlohmann::json& object);

// ---- EndpointSlices -----------------------------------------------------------------------------

struct Slice {
  std::string name;
  bool ipv6 = false;
  bool port_missing = false;  // it has no port of the name asked for
  std::vector<endpoints::EndpointSpec> endpoints;
};
// `port`: a port's name or number; empty: the slice's first. Endpoints are named after their pods,
// else after their addresses. Not ready or terminating: draining.
Slice read_slice(const nlohmann::json& object, const std::string& port);

// The endpoints of all slices of a service: an endpoint that several slices have counts once, ready
// before draining, IPv4 before IPv6.
std::vector<endpoints::EndpointSpec> join_slices(const std::vector<const Slice*>& slices);

// ---- Pods and InferencePools --------------------------------------------------------------------

struct InferencePool {
  Labels selector;
  std::vector<std::uint32_t> ports;  // empty: the object says none that can be used

  bool operator==(const InferencePool&) const = default;
};
// Reads inference.networking.k8s.io/v1 (selector.matchLabels, targetPorts) and the older
// inference.networking.x-k8s.io/v1alpha2 (selector, targetPortNumber).
InferencePool read_inference_pool(const nlohmann::json& object);

struct Pod {
  std::string name;
  std::string address;  // empty: not to be used, as long as it has none or when it has ended
  std::string uid;
  bool draining = false;  // not ready, or on its way out
  Labels labels;
  std::string node;
  // For each container: the ports that it declares and how often it was restarted.
  struct Container {
    std::vector<std::uint32_t> ports;
    std::uint64_t restarts = 0;
    bool operator==(const Container&) const = default;
  };
  std::vector<Container> containers;
};
Pod read_pod(const nlohmann::json& object);

// The endpoints of a pod of an InferencePool: one for each target port, as ranks. A restart of the
// container that serves is another incarnation; one of a container beside it is not.
std::vector<endpoints::EndpointSpec> endpoints_of(const Pod& pod,
                                                  const std::vector<std::uint32_t>& ports);

}  // namespace pickd::discovery::kubernetes

// EndpointSlices of the service "vllm" in the namespace "ai", as its controller writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pickd::discovery::test {

inline const std::string kSlices = "/apis/discovery.k8s.io/v1/namespaces/ai/endpointslices";

inline nlohmann::json endpoint(const std::string& pod, const std::string& address,
                               bool ready = true) {
  return {
      {"addresses", {address}},
      {"conditions", {{"ready", ready}, {"serving", ready}, {"terminating", false}}},
      {"nodeName", "node-1"},
      {"zone", "zone-a"},
      {"targetRef", {{"kind", "Pod"}, {"name", pod}, {"namespace", "ai"}, {"uid", "u-" + pod}}}};
}

inline nlohmann::json slice(const std::string& name, const std::vector<nlohmann::json>& endpoints,
                            const std::string& service = "vllm") {
  return {{"apiVersion", "discovery.k8s.io/v1"},
          {"kind", "EndpointSlice"},
          {"metadata",
           {{"name", name},
            {"namespace", "ai"},
            {"labels",
             {{"kubernetes.io/service-name", service},
              {"endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"}}}}},
          {"addressType", "IPv4"},
          {"ports",
           {{{"name", "metrics"}, {"port", 9090}, {"protocol", "TCP"}},
            {{"name", "http"}, {"port", 8000}, {"protocol", "TCP"}}}},
          {"endpoints", endpoints}};
}

}  // namespace pickd::discovery::test

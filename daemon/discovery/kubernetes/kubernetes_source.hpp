// Kubernetes source: the EndpointSlices of a service, or the pods that an InferencePool selects, as
// endpoints.
//
// Sets are told whole, from what is known of all slices or pods; a burst of changes makes one set.
// While a list is incomplete, or the API server cannot be reached, the set of before stays. Reactor
// thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/base/result.hpp"
#include "daemon/config/pool_config.hpp"
#include "daemon/discovery/kubernetes/list_watch.hpp"
#include "daemon/discovery/kubernetes/objects.hpp"
#include "daemon/discovery/source.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/net/resolver.hpp"

namespace pickd::discovery::kubernetes {

// How the API server is reached.
struct Access {
  net::http::Url server;
  net::http::ClientOptions client;
  std::string name_space;
  std::uint64_t back_off_min_ms = 200;
  std::uint64_t back_off_max_ms = 30'000;
};
// From the configuration, and from what Kubernetes gives every pod: its service account's files and
// the variables KUBERNETES_SERVICE_HOST and _PORT, which the caller passes. `resolver` may be null
// for servers given by address.
base::Result<Access> make_access(const config::KubernetesDiscoveryConfig& config,
                                 const std::string& service_host, const std::string& service_port,
                                 net::Resolver* resolver);

class KubernetesSource final : public Source {
 public:
  KubernetesSource(net::Reactor& reactor, std::unique_ptr<net::Resolver> resolver, Access access,
                   config::KubernetesDiscoveryConfig config, SourceHooks hooks);
  ~KubernetesSource() override;
  void start() override;

 private:
  // What is known by name; a list fills `incoming`, which takes the place of `now` when it is
  // whole.
  template <typename Facts>
  struct Collection {
    std::map<std::string, Facts> now;
    std::map<std::string, Facts> incoming;
    bool whole = false;  // there was a whole list
  };

  template <typename Facts, typename Read>
  ListWatchHooks keep(Collection<Facts>& collection, Read read, const std::string& what);
  std::unique_ptr<ListWatch> make(const std::string& path, const std::string& query,
                                  ListWatchHooks hooks);
  void watch_pool();
  void pool_changed();
  void tell_soon();
  void tell();
  void trouble(const std::string& what, const std::string& why);

  net::Reactor& reactor_;
  std::unique_ptr<net::Resolver> resolver_;
  Access access_;
  config::KubernetesDiscoveryConfig config_;
  SourceHooks hooks_;
  std::map<std::string, std::string> troubles_;  // by what is watched
  Collection<Slice> slices_;
  Collection<InferencePool> pools_;
  Collection<Pod> pods_;
  std::optional<InferencePool> pool_;  // whose pods are watched
  std::size_t group_ = 0;              // of the API groups of an InferencePool
  std::size_t unknown_groups_ = 0;     // in a row
  std::unique_ptr<ListWatch> main_;    // the slices, or the pool
  std::unique_ptr<ListWatch> pod_watch_;
  net::Reactor::TimerId telling_ = 0;
  std::uint64_t told_ns_ = 0;  // when
  net::Reactor::TimerId switching_ = 0;
};

}  // namespace pickd::discovery::kubernetes

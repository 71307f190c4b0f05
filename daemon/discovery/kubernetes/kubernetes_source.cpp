#include "daemon/discovery/kubernetes/kubernetes_source.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "daemon/base/clock.hpp"

namespace pickd::discovery::kubernetes {

namespace {

constexpr std::uint64_t kSettleNs = 20'000'000;  // changes within it make one set
// The same soon after a set: each is work for the whole daemon, and changes may come without end.
constexpr std::uint64_t kBusyNs = 250'000'000;
constexpr std::uint64_t kCalmNs = 1'000'000'000;
// Tried in turn: a cluster has the one or the other.
constexpr const char* kPoolGroups[] = {"inference.networking.k8s.io/v1",
                                       "inference.networking.x-k8s.io/v1alpha2"};

// Told apart from what the watch itself says of its collection.
constexpr const char* kTooMany = "number of ";

std::string label_query(const Labels& labels) {
  std::string selector;
  for (const auto& [key, value] : labels)
    selector += (selector.empty() ? "" : ",") + key + "=" + value;
  return "labelSelector=" + encoded(selector);
}

}  // namespace

KubernetesSource::KubernetesSource(net::Reactor& reactor, std::unique_ptr<net::Resolver> resolver,
                                   Access access, config::KubernetesDiscoveryConfig config,
                                   SourceHooks hooks)
    : reactor_(reactor),
      resolver_(std::move(resolver)),
      access_(std::move(access)),
      config_(std::move(config)),
      hooks_(std::move(hooks)) {}

KubernetesSource::~KubernetesSource() {
  reactor_.cancel(telling_);
  reactor_.cancel(switching_);
}

std::unique_ptr<ListWatch> KubernetesSource::make(const std::string& path, const std::string& query,
                                                  ListWatchHooks hooks) {
  ListWatchOptions options;
  options.path = path;
  options.query = query;
  options.back_off_min_ms = access_.back_off_min_ms;
  options.back_off_max_ms = access_.back_off_max_ms;
  auto made = std::make_unique<ListWatch>(reactor_, access_.server, access_.client,
                                          std::move(options), std::move(hooks));
  made->start();
  return made;
}

template <typename Facts, typename Read>
ListWatchHooks KubernetesSource::keep(Collection<Facts>& collection, Read read,
                                      const std::string& what) {
  ListWatchHooks hooks;
  hooks.list_begins = [&collection] { collection.incoming.clear(); };
  hooks.found = [&collection, read](const nlohmann::json& object) {
    collection.incoming.insert_or_assign(name_of(object), read(object));
  };
  hooks.list_ends = [this, &collection, what] {
    collection.now = std::exchange(collection.incoming, {});
    collection.whole = true;
    trouble(kTooMany + what, "");
    tell_soon();
  };
  hooks.changed = [this, &collection, read, what](const nlohmann::json& object) {
    const std::string name = name_of(object);
    if (collection.now.size() >= kObjectsMax && !collection.now.contains(name)) {
      return trouble(kTooMany + what,
                     "there are more than " + std::to_string(kObjectsMax) +
                         "; the others are left out; choose fewer by their labels");
    }
    collection.now.insert_or_assign(name, read(object));
    tell_soon();
  };
  hooks.deleted = [this, &collection](const nlohmann::json& object) {
    collection.now.erase(name_of(object));
    tell_soon();
  };
  hooks.trouble = [this, what](const std::string& why) { trouble(what, why); };
  return hooks;
}

void KubernetesSource::start() {
  if (config_.service.empty()) return watch_pool();
  Labels labels = {{"kubernetes.io/service-name", config_.service}};
  labels.insert(labels.end(), config_.labels.begin(), config_.labels.end());
  const auto read = [port = config_.port](const nlohmann::json& object) {
    return read_slice(object, port);
  };
  main_ = make(
      "/apis/discovery.k8s.io/v1/namespaces/" + encoded(access_.name_space) + "/endpointslices",
      label_query(labels), keep(slices_, read, "EndpointSlices"));
}

void KubernetesSource::watch_pool() {
  ListWatchHooks hooks = keep(pools_, read_inference_pool, "InferencePool");
  hooks.unknown = [this] {
    // The other group, in a turn of its own: this object is on the stack.
    if (switching_ != 0) return;
    if (++unknown_groups_ >= std::size(kPoolGroups)) {
      trouble("InferencePool", std::string("the API server knows neither ") + kPoolGroups[0] +
                                   " nor " + kPoolGroups[1] + "; are the CRDs installed?");
    }
    switching_ = reactor_.after(access_.back_off_min_ms * 1'000'000, [this] {
      switching_ = 0;
      group_ = (group_ + 1) % std::size(kPoolGroups);
      watch_pool();
    });
  };
  main_ =
      make(std::string("/apis/") + kPoolGroups[group_] + "/namespaces/" +
               encoded(access_.name_space) + "/inferencepools",
           "fieldSelector=" + encoded("metadata.name=" + config_.inference_pool), std::move(hooks));
}

// Another selector is another watch; other ports are only other endpoints of the same pods.
void KubernetesSource::pool_changed() {
  const auto at = pools_.now.find(config_.inference_pool);
  if (at == pools_.now.end()) {
    pool_.reset();
    pod_watch_.reset();
    pods_ = {};
    trouble("pods", "");
    return trouble("selection", "there is no InferencePool \"" + config_.inference_pool +
                                    "\" in namespace \"" + access_.name_space + "\"");
  }
  const bool same = pool_.has_value() && pool_->selector == at->second.selector;
  pool_ = at->second;
  const bool usable = !pool_->selector.empty() && !pool_->ports.empty();
  trouble("selection", usable ? ""
                              : "the InferencePool \"" + config_.inference_pool +
                                    "\" has no selector or no target port");
  if (same) return;
  pod_watch_.reset();
  trouble("pods", "");
  pods_.whole = false;  // until the new selection is known, the old endpoints stay
  if (!usable) return;
  Labels labels = pool_->selector;
  labels.insert(labels.end(), config_.labels.begin(), config_.labels.end());
  pod_watch_ = make("/api/v1/namespaces/" + encoded(access_.name_space) + "/pods",
                    label_query(labels), keep(pods_, read_pod, "pods"));
}

void KubernetesSource::tell_soon() {
  if (telling_ != 0) return;
  const bool calm = told_ns_ == 0 || base::monotonic_ns() - told_ns_ >= kCalmNs;
  telling_ = reactor_.after(calm ? kSettleNs : kBusyNs, [this] {
    telling_ = 0;
    told_ns_ = base::monotonic_ns();
    tell();
  });
}

void KubernetesSource::tell() {
  if (!config_.service.empty()) {
    std::vector<const Slice*> slices;
    std::string missing;
    for (const auto& [name, slice] : slices_.now) {
      slices.push_back(&slice);
      if (slice.port_missing && missing.empty()) {
        missing = "EndpointSlice \"" + printable(name) + "\" has no port \"" + config_.port + "\"";
      }
    }
    trouble("port", missing);
    if (slices_.whole) hooks_.set(join_slices(slices));
    return;
  }
  if (!pools_.whole) return;
  unknown_groups_ = 0;
  pool_changed();
  if (!pool_) return hooks_.set({});
  if (!pods_.whole) return;
  std::vector<endpoints::EndpointSpec> set;
  for (const auto& [name, pod] : pods_.now) {
    auto some = endpoints_of(pod, pool_->ports);
    std::move(some.begin(), some.end(), std::back_inserter(set));
  }
  hooks_.set(std::move(set));
}

void KubernetesSource::trouble(const std::string& what, const std::string& why) {
  if (why.empty()) {
    troubles_.erase(what);
  } else {
    troubles_[what] = what + ": " + why;
  }
  std::string all;
  for (const auto& [of, text] : troubles_) all += (all.empty() ? "" : "\n") + text;
  hooks_.trouble(all);
}

}  // namespace pickd::discovery::kubernetes

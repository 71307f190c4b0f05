#include "daemon/endpoints/topology.hpp"

#include <algorithm>

namespace pickd::endpoints {

Topology::Topology(std::vector<TopologyEndpoint> endpoints) : endpoints_(std::move(endpoints)) {
  for (std::size_t at = 0; at < endpoints_.size(); ++at) {
    const TopologyEndpoint& endpoint = endpoints_[at];
    if (endpoint.id >= briefs_.size()) briefs_.resize(endpoint.id + 1U);
    briefs_[endpoint.id] = {endpoint.text_version, endpoint.latency_class,
                            static_cast<std::uint16_t>(at)};
    all_.push_back(endpoint.id);
    if (endpoint.models.empty()) any_model_.push_back(endpoint.id);
    for (const std::string& model : endpoint.models) by_model_[model].push_back(endpoint.id);
    by_text_.emplace(endpoint.name, endpoint.id);
    if (endpoint.address != endpoint.name) by_text_.emplace(endpoint.address, endpoint.id);
  }
  for (auto& [model, ids] : by_model_) {
    ids.insert(ids.end(), any_model_.begin(), any_model_.end());
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());  // a model listed twice
  }
}

const TopologyEndpoint* Topology::find_name(std::string_view name) const {
  const TopologyEndpoint* found = nullptr;
  for_each_named(name, [&](std::uint16_t id) {
    if (find(id)->name == name) found = find(id);
  });
  return found;
}

const std::vector<std::uint16_t>* Topology::candidates(std::string_view model) const {
  if (model.empty()) return &all_;
  if (const auto at = by_model_.find(model); at != by_model_.end()) return &at->second;
  // With no endpoint at all the answer is "no ready endpoint", not "unknown model".
  return any_model_.empty() && !all_.empty() ? nullptr : &any_model_;
}

}  // namespace pickd::endpoints

#include "daemon/discovery/set_keeper.hpp"

#include <algorithm>
#include <unordered_set>

#include "daemon/discovery/ranks.hpp"
#include "daemon/endpoints/configured_spec.hpp"

namespace pickd::discovery {

std::string source_name(const std::string& pool) { return kSourcePrefix + pool; }

SetKeeper::SetKeeper(Parts parts, config::PoolConfig pool)
    : parts_(std::move(parts)), pool_(std::move(pool)), source_(source_name(pool_.name)) {}

endpoints::EndpointSpec SetKeeper::completed(endpoints::EndpointSpec spec) const {
  spec.pool = pool_.name;
  if (spec.models.empty()) spec.models = pool_.models;
  if (!pool_.discovery) return spec;
  const config::DiscoveryConfig& discovery = *pool_.discovery;
  if (spec.role == abi::Role::kBoth) spec.role = static_cast<abi::Role>(discovery.role);
  if (spec.capacity_blocks == 0) {
    spec.capacity_blocks = endpoints::blocks_of(discovery.capacity_tokens, parts_.block_tokens);
  }
  for (const auto& [key, value] : discovery.labels) {
    const bool has = std::any_of(spec.labels.begin(), spec.labels.end(),
                                 [&key = key](const auto& label) { return label.first == key; });
    if (!has) spec.labels.emplace_back(key, value);
  }
  return spec;
}

std::string SetKeeper::reason_against(const endpoints::EndpointSpec& spec) const {
  if (auto checked = endpoints::check_spec(spec); !checked) return checked.error().text;
  const endpoints::TopologyEndpoint* taken = parts_.topologies->current().find_name(spec.name);
  if (taken == nullptr || taken->source == source_) return "";
  return "endpoint \"" + spec.name + "\": " + taken->source +
         " has one of this name, which stays; rename one of them";
}

SetKeeper::Taken SetKeeper::take(const std::vector<endpoints::EndpointSpec>& set) {
  if (&set != &last_) last_ = set;
  std::vector<endpoints::EndpointSpec> specs;
  specs.reserve(set.size());
  for (const endpoints::EndpointSpec& spec : set) specs.push_back(completed(spec));
  if (pool_.ranks) specs = expand_ranks(specs, *pool_.ranks);

  Taken taken;
  std::set<std::string> complaints;
  const auto complain = [&](const std::string& text) {
    ++taken.left_out;
    if (complaints.size() == kComplaintsMax) return;
    if (complaints.insert(text).second && !said_.contains(text)) taken.complaints.push_back(text);
  };
  std::unordered_set<std::string> names;
  std::vector<endpoints::EndpointSpec> good;
  good.reserve(specs.size());
  for (endpoints::EndpointSpec& spec : specs) {
    if (std::string why = reason_against(spec); !why.empty()) {
      complain(why);
    } else if (!names.insert(spec.name).second) {
      complain("endpoint \"" + spec.name + "\": the set has it twice; the first one counts");
    } else {
      good.push_back(std::move(spec));
    }
  }

  // Those that are there already first: a set that is too large must not drive out its own members.
  const auto& all = parts_.topologies->current().endpoints();
  const auto others = static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [this](const auto& endpoint) { return endpoint.source != source_; }));
  const std::size_t room = parts_.endpoints_max > others ? parts_.endpoints_max - others : 0;
  if (good.size() > room) {
    const std::size_t over = good.size() - room;
    std::stable_partition(good.begin(), good.end(), [this](const auto& spec) {
      return parts_.topologies->current().find_name(spec.name) != nullptr;
    });
    good.resize(room);
    complain(std::to_string(over) + " endpoints more than there is room for; raise " +
             "state.endpoints_max, which is " + std::to_string(parts_.endpoints_max));
    taken.left_out += over - 1;
  }

  taken.endpoints = good.size();
  left_out_ = taken.left_out != 0;
  if (!given_any_ || good != given_) {
    if (auto done = parts_.table->replace(good, source_, parts_.tick_now()); !done) {
      complain(done.error().text);
      left_out_ = true;
    } else {
      given_ = std::move(good);
      given_any_ = true;
      taken.changed = true;
    }
  }
  said_ = std::move(complaints);
  return taken;
}

}  // namespace pickd::discovery

// The endpoint table's whole sets: what replace() adds, updates and retires, and in which order.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "daemon/endpoints/endpoint_table.hpp"

namespace pickd::endpoints {

namespace {

// Where each name stands in `entries`, which must neither grow beyond its capacity nor shrink.
std::unordered_map<std::string_view, std::size_t> places_of(
    const std::vector<TopologyEndpoint>& entries) {
  std::unordered_map<std::string_view, std::size_t> places;
  places.reserve(entries.size());
  for (std::size_t at = 0; at < entries.size(); ++at) places.emplace(entries[at].name, at);
  return places;
}

}  // namespace

// Puts the new endpoints of a set beside the old ones, where there is room for both. Without it a
// set that has nothing in common with the one before would leave workers a moment with no endpoint
// at all: the old ones retired, the new ones not yet in the topology.
bool EndpointTable::add_first(std::vector<TopologyEndpoint> entries,
                              const std::vector<EndpointSpec>& specs, const std::string& source,
                              std::uint64_t tick) {
  std::vector<const EndpointSpec*> joining;
  {
    const auto known = places_of(entries);
    for (const EndpointSpec& spec : specs) {
      if (!known.contains(spec.name)) joining.push_back(&spec);
    }
  }
  if (joining.empty() || entries.size() + joining.size() > parts_.ids - 1) return false;
  if (!check_room(entries, specs, source)) return false;
  IdSet used = ids_of(entries);
  for (const EndpointSpec* spec : joining) {
    const auto id = free_id(used);
    if (!id) return false;  // cannot be: there is room
    used.set(id.value());
    add_one(entries, *spec, id.value(), source, tick);
  }
  publish(std::move(entries));
  return true;
}

base::Result<void> EndpointTable::replace(const std::vector<EndpointSpec>& specs,
                                          const std::string& source, std::uint64_t tick,
                                          NameTaken taken) {
  std::vector<TopologyEndpoint> entries = store_->current().endpoints();
  const auto known = places_of(entries);
  std::unordered_set<std::string_view> wanted;
  for (const EndpointSpec& spec : specs) {
    if (auto checked = check_spec(spec); !checked) return checked;
    if (!wanted.insert(spec.name).second) {
      return base::Error{-EEXIST, "endpoint \"" + spec.name + "\": named twice in the new set"};
    }
    const auto at = known.find(spec.name);
    if (at == known.end()) continue;
    TopologyEndpoint& entry = entries[at->second];
    if (entry.source != source && taken == NameTaken::kTakeOver) entry.source = source;
    if (entry.source != source) {
      return base::Error{-EEXIST, "endpoint \"" + spec.name + "\": it belongs to " + entry.source};
    }
  }
  const auto others = static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [&](const TopologyEndpoint& entry) { return entry.source != source; }));
  if (others + specs.size() > parts_.ids - 1) {
    return base::Error{-E2BIG, "the new set does not fit: " + std::to_string(parts_.ids - 1) +
                                   " endpoints at most; raise state.endpoints_max"};
  }
  std::vector<TopologyEndpoint> kept = entries;
  std::erase_if(kept, [&](const TopologyEndpoint& entry) {
    return entry.source == source && !wanted.contains(entry.name);
  });
  if (auto room = check_room(std::move(kept), specs, source); !room) return room;
  if (add_first(entries, specs, source, tick)) entries = store_->current().endpoints();
  std::erase_if(entries, [&](const TopologyEndpoint& entry) {
    if (entry.source != source || wanted.contains(entry.name)) return false;
    retire(entry.id, tick);
    return true;
  });
  IdSet used = ids_of(entries);
  entries.reserve(entries.size() + specs.size());  // the places below point into it
  const auto stays = places_of(entries);
  for (const EndpointSpec& spec : specs) {
    if (const auto at = stays.find(spec.name); at != stays.end()) {
      update_one(entries[at->second], spec, tick);
      continue;
    }
    auto id = free_id(used);
    if (!id) return id.error();
    used.set(*id);
    add_one(entries, spec, *id, source, tick);
  }
  publish(std::move(entries));
  return {};
}

}  // namespace pickd::endpoints

// The endpoint table: gives ids, writes the records of the state segment, publishes the topology.
//
// Control thread only, but for the words of the records, which workers read and change by the rules
// of count_word.hpp. Knows nothing of where endpoints come from: a source is a name.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/state_layout.hpp"
#include "daemon/base/result.hpp"
#include "daemon/endpoints/endpoint_spec.hpp"
#include "daemon/endpoints/latency_classes.hpp"
#include "daemon/endpoints/routing_snapshot.hpp"
#include "daemon/endpoints/topology_store.hpp"

namespace pickd::endpoints {

class EndpointTable {
 public:
  struct Parts {
    abi::EndpointRecord* records;
    std::uint32_t ids;                      // records there are, id 0 included
    abi::Word* high_water;                  // ids at or above it were never used
    std::uint64_t capacity_blocks_default;  // 0 = no limit
    RoutingParts routing = {};              // without a version word: no snapshot is kept
    // The clock, to be looked at again after a reset; empty: time stands still between the argument
    // and the store. Not for anything else: what happens when is the caller's to say.
    std::function<std::uint64_t()> tick_now = {};
    // Whether somebody looks if the engine lives (engine_watch.hpp): then it joins as starting,
    // else as ready. Empty: nobody does.
    std::function<bool(const EndpointSpec& spec, std::string_view source)> scraped = {};
  };
  EndpointTable(const Parts& parts, TopologyStore& store) : parts_(parts), store_(&store) {}

  // Each takes the tick of now: what a pick stamped before a change must lie below the new floor.
  base::Result<void> add(const EndpointSpec& spec, const std::string& source, std::uint64_t tick);
  base::Result<void> update(const EndpointSpec& spec, std::uint64_t tick);
  base::Result<void> remove(std::string_view name, std::uint64_t tick);
  base::Result<void> drain(std::string_view name, bool on);
  base::Result<void> reset(std::string_view name, std::uint64_t tick);

  // What happens to a name that another source has.
  enum class NameTaken { kRefuse, kTakeOver };
  // Makes `specs` the whole set of `source`: adds, updates and removes as needed; others' stay.
  // Refuses the set as a whole when a spec is wrong or a name belongs to another source.
  base::Result<void> replace(const std::vector<EndpointSpec>& specs, const std::string& source,
                             std::uint64_t tick, NameTaken taken = NameTaken::kRefuse);

  // After a warm start: takes back the endpoints that the daemon before wrote into the routing
  // snapshot, with their ids and generations, so that what is known of them goes on. A record that
  // does not fit the snapshot is retired. One whose horizon or floor lies in the future is damaged:
  // it begins anew, for otherwise nothing of it would be seen until then; its name goes to
  // `damaged`. Returns how many were taken back. Before anything else is called.
  std::size_t restore(std::uint64_t tick, std::vector<std::string>* damaged = nullptr);

  std::size_t count() const { return store_->current().endpoints().size(); }
  std::size_t count_ready() const;
  const LatencyClasses& latency_classes() const { return latency_classes_; }

 private:
  using IdSet = std::bitset<abi::kEndpointIdsMax>;

  static IdSet ids_of(const std::vector<TopologyEndpoint>& entries);
  base::Result<std::uint16_t> free_id(const IdSet& used) const;
  void raise_floors(abi::EndpointRecord& record, std::uint64_t tick);
  void begin_generation(std::uint16_t id, std::uint64_t tick, abi::EndpointState state);
  abi::EndpointState joins_as(const EndpointSpec& spec, std::string_view source) const;
  void write_text(abi::EndpointRecord& record, const EndpointSpec& spec);
  void write_told(abi::EndpointRecord& record, const EndpointSpec& spec, std::uint64_t tick);
  void write_capacity(abi::EndpointRecord& record, std::uint64_t told, std::uint64_t told_before);
  void add_one(std::vector<TopologyEndpoint>& entries, const EndpointSpec& spec, std::uint16_t id,
               const std::string& source, std::uint64_t tick);
  void update_one(TopologyEndpoint& entry, const EndpointSpec& spec, std::uint64_t tick);
  void write_draining(TopologyEndpoint& entry, const EndpointSpec& spec);
  // Whether the routing snapshot has room for `entries` with `specs` of `source` added or put in
  // their place.
  base::Result<void> check_room(std::vector<TopologyEndpoint> entries,
                                const std::vector<EndpointSpec>& specs,
                                const std::string& source) const;
  bool add_first(std::vector<TopologyEndpoint> entries, const std::vector<EndpointSpec>& specs,
                 const std::string& source, std::uint64_t tick);
  void retire(std::uint16_t id, std::uint64_t tick);
  void publish(std::vector<TopologyEndpoint> entries);
  std::uint16_t latency_class_of(const TopologyEndpoint& entry);

  Parts parts_;
  TopologyStore* store_;
  LatencyClasses latency_classes_;
};

}  // namespace pickd::endpoints

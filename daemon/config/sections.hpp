// Sections: the parts of the file that are lists of things: `endpoints`, `pools`, `scheduling`.
//
// Private to the folder. Each reader appends what is wrong to `errors` and goes on.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/config/errors.hpp"
#include "daemon/config/map_reader.hpp"

namespace pickd::config {

// A key of an entry, for the manual; tests check that each is read.
struct ItemKey {
  std::string name;
  std::string range;
  std::string absent;
  std::string help;
};
const std::vector<ItemKey>& endpoint_keys();
const std::vector<ItemKey>& pool_keys();
const std::vector<ItemKey>& ranks_keys();
const std::vector<ItemKey>& discovery_keys();
const std::vector<ItemKey>& dns_keys();
const std::vector<ItemKey>& kubernetes_keys();
const std::vector<ItemKey>& scheduling_keys();
const std::vector<ItemKey>& engine_keys();

const char* role_name(Role role);

// The entries of a list, or none and an error.
const std::vector<Tree>& list_entries(const Node& list, const Place& place, const std::string& key,
                                      Errors& errors);
// `capacity_tokens` of whatever has one.
std::uint64_t read_capacity_tokens(MapReader& read);
// One endpoint. `pool`: the pool by its place, where `pool:` is refused; null: the entry may say.
EndpointConfig read_endpoint(const Node& node, const std::string& key, const std::string* pool,
                             Errors& errors);

// `list`: the value of `endpoints:`. Appends to `endpoints`.
void read_endpoints(const Node& list, const Place& place, std::vector<EndpointConfig>& endpoints,
                    Errors& errors);
// `list`: the value of `pools:`. Appends its endpoints to `endpoints`, and to `pools` those of
// which there is more to say.
void read_pools(const Node& list, const Place& place, std::vector<EndpointConfig>& endpoints,
                std::vector<PoolConfig>& pools, Errors& errors);
// What only the whole list shows: duplicate names, more than `endpoints_max`.
void check_endpoints(const std::vector<EndpointConfig>& endpoints, std::uint64_t endpoints_max,
                     Errors& errors);

// `list`: the value of `scrape.engines`. What a metric may look like is checked by the scraper.
void read_engines(const Node& list, const Place& place, std::vector<EngineMetricsConfig>& engines,
                  Errors& errors);
// As the file would say them; empty without any.
std::string print_engines(const std::vector<EngineMetricsConfig>& engines);

// An EndpointPickerConfig: the value of `scheduling:`, or (`whole_file`) a file of its own, where
// apiVersion and kind must stand. `profile` and `schedulingConfigFile` are read by the loader and
// passed over here.
void read_scheduling(const Node& map, bool whole_file, SchedulingConfig& scheduling,
                     Errors& errors);

}  // namespace pickd::config

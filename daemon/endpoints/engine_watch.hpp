// Engine watch: what scrapes and reports tell of the endpoints becomes load, health and
// generations. This is what a scraper calls.
//
// Control thread only, ticks are arguments, no I/O. Workers meet it in two words of a record: they
// mark a ready endpoint suspect when a request failed there, and count the failure; turn() decides
// what becomes of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/endpoints/health.hpp"
#include "daemon/endpoints/told_load.hpp"

namespace pickd::endpoints {

struct WatchRules {
  LoadRules load;
  HealthRules health;
};

class EngineWatch {
 public:
  EngineWatch(EndpointTable& table, TopologyStore& store, abi::EndpointRecord* records,
              const WatchRules& rules);

  // A scrape of this endpoint goes out.
  void scrape_sent(std::uint16_t id);
  // It was answered by a page that could be read. The notes are for counters and the log.
  LoadNotes scrape_ok(std::uint16_t id, const EngineFacts& facts, std::uint64_t tick);
  // It was answered, but not by metrics (404, refused page): the engine lives, its load ages.
  void scrape_unreadable(std::uint16_t id, std::uint64_t tick);
  // No answer, or an answer that says that the engine is ill: connect error, time-out, reset, 5xx.
  void scrape_failed(std::uint16_t id, std::uint64_t tick);
  // The tick at which the next scrape should be sent, given when the last one was.
  std::uint64_t probe_tick(std::uint16_t id, std::uint64_t last_tick,
                           std::uint32_t interval_ticks) const;

  // Looks at what workers noted and at the time. Call it every 100 ms or so, and after changes of
  // the endpoints. Returns how many endpoints changed their state.
  std::uint32_t turn(std::uint64_t tick);

  // One change of state since the last call of take_changes(), for the log.
  struct Change {
    std::uint16_t id;
    abi::EndpointState from;
    abi::EndpointState to;
  };
  std::vector<Change> take_changes();

 private:
  struct Watched {
    std::uint32_t generation = 0;  // of the record when this was begun; another one: begin anew
    std::uint32_t own_before = 0;
    Health health;
    LoadMemory memory;
  };
  Watched& watched(std::uint16_t id);

  EndpointTable* table_;
  TopologyStore* store_;
  abi::EndpointRecord* records_;
  WatchRules rules_;
  std::vector<Watched> watched_;  // by id
  std::vector<Change> changes_;
};

}  // namespace pickd::endpoints

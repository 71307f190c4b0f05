// Engine watch: what scrapes and reports tell of the endpoints becomes load, health and
// generations. This is what a scraper calls.
//
// Control thread only, ticks are arguments, no I/O. Workers meet it in two words of a record
// (failure_word.hpp): they count a failed request and make a ready endpoint suspect; turn() decides
// what becomes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/endpoints/health.hpp"
#include "daemon/endpoints/told_load.hpp"

namespace pickd::endpoints {

struct WatchRules {
  LoadRules load;
  HealthRules health;
  // Whether this endpoint is scraped; empty: as `health` says of all.
  std::function<bool(const TopologyEndpoint& endpoint)> scraped = {};
};

class EngineWatch {
 public:
  EngineWatch(EndpointTable& table, TopologyStore& store, abi::EndpointRecord* records,
              const WatchRules& rules);

  // A scrape of this endpoint goes out.
  void scrape_sent(std::uint16_t id);
  // It was answered by a page that could be read. A restarted engine begins a new generation here;
  // one that restarts again and again, as several behind one address seem to, does not, until it
  // has been steady for a minute. The notes are for counters and the log.
  LoadNotes scrape_ok(std::uint16_t id, const EngineFacts& facts, std::uint64_t tick);
  // It was answered, but not by metrics (404, refused page): the engine lives, its load ages.
  void scrape_unreadable(std::uint16_t id, std::uint64_t tick);
  // No answer, or one that says that the engine is ill: connect error, time-out, reset, 5xx.
  void scrape_failed(std::uint16_t id, std::uint64_t tick);
  // The tick at which the next scrape should be sent, given when the last one was.
  std::uint64_t probe_tick(std::uint16_t id, std::uint64_t last_tick, std::uint32_t interval_ticks);

  // Looks at what workers noted and at the time. Call it every 100 ms or so, and after changes of
  // the endpoints. Returns how many endpoints changed their state.
  std::uint32_t turn(std::uint64_t tick);

  struct Change {
    std::uint16_t id;
    abi::EndpointState from;
    abi::EndpointState to;
  };
  // The changes of state since the last call, for the log; no more than 4,096 are kept.
  std::vector<Change> take_changes();

  // The newest facts of an endpoint's scrapes, nullptr where none was told: for status.
  const EngineFacts* facts(std::uint16_t id) const;

 private:
  struct Watched {
    std::uint32_t generation = 0;                          // another one in the record: begin anew
    abi::EndpointState state = abi::EndpointState::kFree;  // as the last turn left it
    std::uint32_t own_before = 0;
    std::uint32_t failures_seen = 0;  // FailureWord::all()
    Health health;
    LoadMemory memory;
  };
  struct Restarts {
    std::uint64_t since_tick = 0;
    std::uint32_t count = 0;
  };
  bool restarts_too_often(std::uint16_t id, std::uint64_t tick);
  Watched& watched(std::uint16_t id);
  // Puts the state that its health gives into the record. True: it changed since the last time.
  bool settle(std::uint16_t id, Watched& watched, std::uint64_t tick);

  EndpointTable* table_;
  TopologyStore* store_;
  abi::EndpointRecord* records_;
  WatchRules rules_;
  std::vector<std::unique_ptr<Watched>> watched_;  // by id
  std::vector<Restarts> restarts_;                 // by id
  std::vector<Change> changes_;
};

}  // namespace pickd::endpoints

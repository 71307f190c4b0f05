// Told load: the facts of a scrape joined with our own counts into the words of a record.
//
// Own counts are the truth about our own traffic; what an engine tells beyond them is the traffic
// of others ("foreign"). Pure: words in memory, the tick an argument. Control thread only; workers
// read the words it stores.
//
// When a gauge is distrusted: it has said the same for `frozen_ticks`, the engine's counters have
// not moved, and nothing of ours was there all the while. Then our own counts speak alone: nobody
// waits, nothing runs, no cache is in use. So it gets a request again, and with that in flight the
// page is believed again: what is really full is tried once in a while, not forgotten. An engine
// that tells of requests may be busy with others' for long: there it takes kBusyFrozenFactor times
// as long.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"
#include "daemon/endpoints/engine_facts.hpp"

namespace pickd::endpoints {

struct LoadRules {
  std::uint32_t block_tokens = 64;            // of the store
  std::uint64_t capacity_blocks_default = 0;  // as configured; 0 = no limit known
  // Age from which what was told is unknown: max(2 intervals, 2 s), in ticks of 50 ms.
  std::uint32_t stale_ticks = 40;
  std::uint32_t frozen_ticks = 200;
};
inline constexpr std::uint32_t kBusyFrozenFactor = 6;

// The last sound value of a field, and when it was told.
struct GoodValue {
  std::uint32_t value = abi::kUnknown32;
  std::uint64_t tick = 0;
};

// What one endpoint's scrapes told before: kept by whoever scrapes it, one a generation.
struct LoadMemory {
  EngineFacts last;
  GoodValue waiting;
  GoodValue running;
  GoodValue kv_use_ppm;
  std::uint64_t same_since_tick = 0;  // since when a page without our traffic says the same
  bool seen = false;
  bool away = false;  // it did not answer since the last page: a small step of its start counts
};

// What was noticed when facts were told, for counters, the log and status.
struct LoadNotes {
  bool restarted = false;  // nothing was stored: begin a new generation, then tell again
  bool unsteady = false;   // it would restart too often: several engines behind one address?
  bool frozen = false;     // the load is distrusted: stored as our own counts say it
  bool block_odd = false;  // block size outside 8..1024: the capacity is the configured one
  std::uint32_t foreign = abi::kUnknown32;  // requests there that are not ours
};

// Requests of ours in flight there, for the generation that the record has now.
std::uint32_t own_inflight(const abi::EndpointRecord& record);

// Stores `facts`. `own_before`: own_inflight() when the scrape was sent, so that a request which
// began or ended meanwhile is not taken for somebody else's. `capacity_told` 0: nobody told a
// capacity for this endpoint, so that the engine's own word counts; else it is left alone.
LoadNotes tell_load(abi::EndpointRecord& record, LoadMemory& memory, const EngineFacts& facts,
                    std::uint32_t own_before, std::uint64_t capacity_told, std::uint64_t tick,
                    const LoadRules& rules);

}  // namespace pickd::endpoints

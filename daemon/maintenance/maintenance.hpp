// The maintenance thread: once a tick it raises horizons, sweeps a slice of the prefix table, ends
// leases that ran out and stores the heartbeat. No pick ever waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/endpoints/reservations.hpp"
#include "daemon/prefix/ages.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/sweep.hpp"
#include "daemon/state/counters.hpp"
#include "daemon/state/tick_clock.hpp"

namespace pickd::maintenance {

struct MaintenanceParts {
  prefix::TableParts table;
  prefix::Ages* ages;
  endpoints::Reservations* reservations;
  abi::StateHeader* header;
  abi::Word* counters_row;
  state::TickClock clock;
  std::uint64_t lease_ticks;
};

// What is believed of the store, in words.
struct StoreSummary {
  std::uint64_t words = 0;  // of the table
  std::uint64_t live = 0;   // an upper bound between two counts
};

// The store in full, counted anew.
struct StoreReport {
  std::uint64_t words = 0;
  std::uint64_t live = 0;
  std::uint64_t global_cuts = 0;
  std::uint64_t global_horizon_age_ticks = 0;  // 0: it never cut
  prefix::SweepTotals last_pass;
  struct Endpoint {
    std::uint64_t live = 0;
    std::uint32_t horizon_age_ticks = 0;  // what is older is forgotten
    const char* rule = "";                // which rule set the horizon
  };
  std::vector<Endpoint> endpoints;  // by id
};

class Maintenance {
 public:
  explicit Maintenance(const MaintenanceParts& parts);
  ~Maintenance();  // stops and joins

  void start();

  // For a virtual clock: runs once at the tick of now, with a whole pass of the sweep when
  // `whole_pass`, and returns when that is done. Control thread.
  void run_now(bool whole_pass);

  StoreSummary summary() const;
  // Counts and returns; waits for the maintenance thread's next turn. Control thread.
  StoreReport report();

 private:
  void run();
  StoreReport make_report(std::uint64_t tick);
  void ask(std::unique_lock<std::mutex>& lock);
  void turn(std::uint64_t tick, bool whole_pass);

  MaintenanceParts parts_;
  state::Counters counters_;
  prefix::Horizons horizons_;
  prefix::Sweep sweep_;
  std::uint64_t last_tick_ = 0;
  std::uint32_t lease_cursor_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  StoreSummary summary_;           // under mutex_
  bool stop_ = false;              // under mutex_
  std::uint64_t asked_ = 0;        // under mutex_: runs asked for
  std::uint64_t done_ = 0;         // under mutex_: runs done
  bool asked_whole_pass_ = false;  // under mutex_
  bool asked_report_ = false;      // under mutex_
  StoreReport report_;             // under mutex_
  std::thread thread_;
};

}  // namespace pickd::maintenance

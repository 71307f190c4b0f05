// The learner thread: takes what became of picks out of the queue, teaches the models and publishes
// new coefficients. No pick ever waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/endpoints/latency_classes.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/latency/learner.hpp"
#include "daemon/maintenance/model_store.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/state/counters.hpp"
#include "daemon/state/tick_clock.hpp"

namespace pickd::maintenance {

// What is known of the latencies of one class, for status answers.
struct LatencySummary {
  latency::ClassCoefficients coefficients;
  latency::ClassAccuracy accuracy;
};

class LearnerThread {
 public:
  LearnerThread(pick::Flights& flights, const state::TickClock& clock, std::uint32_t endpoint_ids,
                std::uint32_t flight_count, const latency::LearnerOptions& options = {});
  ~LearnerThread();  // stops and joins

  // Goes on with what the daemon before left in `store`, and leaves there what it learns, once a
  // second. Before start(); endpoints are known by then. `classes` outlives it.
  void keep(std::unique_ptr<ModelStore> store, const endpoints::LatencyClasses& classes,
            const endpoints::Topology& topology, abi::Word* counters_row);
  void start();

  // What it knew at its last turn, by class. Any thread.
  std::vector<LatencySummary> summary() const;
  latency::LearnerCounts counts() const;
  const latency::TimesSeen& times() const { return learner_.times(); }  // any thread

 private:
  void run();
  void turn();
  void publish(double now_s);
  void restore_classes();
  void write(std::uint64_t now_ns);
  void count();

  pick::Flights* flights_;
  state::TickClock clock_;
  latency::Learner learner_;
  std::uint64_t published_ns_ = 0;
  std::uint64_t drawn_down_ns_ = 0;
  std::uint64_t written_ns_ = 0;
  std::unique_ptr<ModelStore> store_;  // nullptr: what is learned dies with the daemon
  const endpoints::LatencyClasses* classes_ = nullptr;
  std::optional<state::Counters> counters_;
  latency::LearnerCounts counted_;
  std::uint64_t dropped_counted_ = 0;
  bool learned_ = false;        // since it was written
  std::uint16_t restored_ = 0;  // classes below were looked for in the store

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;                    // under mutex_
  std::vector<LatencySummary> summary_;  // under mutex_
  latency::LearnerCounts counts_;        // under mutex_
  std::thread thread_;
};

}  // namespace pickd::maintenance

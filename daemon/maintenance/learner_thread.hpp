// The learner thread: takes what became of picks out of the queue, teaches the models and publishes
// new coefficients. No pick ever waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/latency/learner.hpp"
#include "daemon/pick/flights.hpp"
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

  void start();

  // What it knew at its last turn, by class. Any thread.
  std::vector<LatencySummary> summary() const;
  latency::LearnerCounts counts() const;

 private:
  void run();
  void turn();

  pick::Flights* flights_;
  state::TickClock clock_;
  latency::Learner learner_;
  std::uint64_t published_ns_ = 0;
  std::uint64_t drawn_down_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;                    // under mutex_
  std::vector<LatencySummary> summary_;  // under mutex_
  latency::LearnerCounts counts_;        // under mutex_
  std::thread thread_;
};

}  // namespace pickd::maintenance

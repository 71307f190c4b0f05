// Flights: follows every picked request from its pick to its end. Keeps the live load of each
// endpoint for the cost of the next pick, and hands what happened to the learner through a queue.
//
// The pick core asks it for predictions; the reservation table tells it of changes; one learner
// thread takes the events out and publishes coefficients. Nothing on the request path waits: when
// the queue is full an event is dropped and counted, and a little less is learned.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "abi/limits.hpp"
#include "daemon/base/published.hpp"
#include "daemon/endpoints/flight_observer.hpp"
#include "daemon/latency/cost.hpp"
#include "daemon/latency/itl_promises.hpp"
#include "daemon/latency/learner.hpp"
#include "daemon/latency/live_load.hpp"
#include "daemon/pick/flight_queue.hpp"

namespace pickd::pick {

// What a pick knew of the winner: travels through the reservation to the learner.
struct PickFacts : endpoints::FlightFacts {
  latency::EndpointLoad load;
  latency::Prediction predicted;
  float slowness = 1;
  std::uint16_t class_id = 0;
  // Computed there, at least the last block: what was predicted from. The reservation's number may
  // hold expected output too.
  std::uint32_t uncached_tokens = 0;
  std::uint32_t kv_tokens = 0;
  float slo_itl_ms = 0;  // wanted; 0: nothing
  bool stream = false;
};

class Flights final : public endpoints::FlightObserver {
 public:
  using CoefficientsStore = base::Published<latency::Coefficients, abi::kThreadsCountedMax>;

  Flights(std::uint32_t endpoint_ids, std::uint32_t flights);

  // -- by the pick core ------------------------------------------------------------------------
  // The newest coefficients; `reader` is the worker's own slot, held until its next call. `held`:
  // what its last call gave, nullptr at the first.
  const latency::Coefficients& coefficients(std::uint32_t reader,
                                            const latency::Coefficients* held) {
    return held == nullptr ? coefficients_.acquire(reader) : coefficients_.renew(reader, *held);
  }
  const latency::LiveLoad& live() const { return live_; }
  const latency::ItlPromises& promises() const { return promises_; }

  // -- by the reservation table ----------------------------------------------------------------
  void expected(std::uint32_t flight) const override { live_.prefetch(flight); }
  void began(std::uint32_t flight, const endpoints::NewReservation& reservation) override;
  void first_token(std::uint32_t flight, std::uint64_t now_ns) override;
  void moved(std::uint32_t flight, std::uint64_t endpoint_handle, std::uint64_t now_ns) override;
  void ended(std::uint32_t flight, std::uint64_t now_ns, const endpoints::FlightEnd& end) override;

  // -- by the learner thread -------------------------------------------------------------------
  // Draws down flights whose reports are lost; returns how many. Once a second is enough.
  std::size_t draw_down(latency::Learner& learner, std::uint64_t now_ns);
  // Hands all events so far to the learner; returns how many. `noise`, of a simulation: gives for
  // each answer the factor by which what is learned from it is off.
  std::size_t teach(latency::Learner& learner, const std::function<double()>& noise = {});
  // Where one of the numbers cannot be, picks predict nothing until better ones are published.
  void publish(const latency::Coefficients& newest);
  std::uint64_t events_dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void push(FlightQueue::Kind kind, std::uint32_t flight, std::uint64_t at_ns,
            const endpoints::FlightEnd& end = {});
  std::uint64_t time_or_last(std::uint64_t now_ns);

  latency::LiveLoad live_;
  latency::ItlPromises promises_;
  CoefficientsStore coefficients_;
  FlightQueue queue_;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> last_ns_{0};
};

}  // namespace pickd::pick

// FlightObserver: who wants to know what becomes of picked requests. The reservation table tells
// it, on the thread that changes the record, each change of one flight once and in order.
//
// A flight is a reservation; its number is that of the record and is free again after ended().
// Called on the request path: no lock, no allocation, no system call.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"
#include "daemon/endpoints/usage.hpp"

namespace pickd::endpoints {

struct NewReservation;

// What the maker of a reservation hands through to the observer; the table does not look into it.
struct FlightFacts {};

// How a request ended, and all that was told of its usage.
struct FlightEnd {
  bool served = false;
  Usage usage;
};

// Times are nanoseconds of the store's clock; 0 where who ended it knows none (a lease, a client's
// end).
class FlightObserver {
 public:
  virtual ~FlightObserver() = default;
  // It may begin soon: time to fetch what stands under its number. A hint.
  virtual void expected(std::uint32_t) const {}
  virtual void began(std::uint32_t flight, const NewReservation& reservation) = 0;
  virtual void first_token(std::uint32_t flight, std::uint64_t now_ns) = 0;
  virtual void moved(std::uint32_t flight, std::uint64_t endpoint_handle, std::uint64_t now_ns) = 0;
  virtual void ended(std::uint32_t flight, std::uint64_t now_ns, const FlightEnd& end) = 0;
};

}  // namespace pickd::endpoints

// What the tests of the reservations share: slots and endpoint records in plain memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "daemon/endpoints/count_word.hpp"
#include "daemon/endpoints/reservations.hpp"

namespace pickd::endpoints::test {

inline std::uint64_t count_of(const abi::Word& word) { return abi::CountWord{word.load()}.count(); }

class ReservationsTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSlots = 256;
  static constexpr std::uint32_t kEndpoints = 16;
  static constexpr std::uint32_t kUid = 1000;

  ReservationsTest() : ReservationsTest(kSlots) {}
  explicit ReservationsTest(std::uint32_t slots)
      : slots_(new abi::Reservation[slots]()),
        records_(new abi::EndpointRecord[kEndpoints]()),
        table_(slots_.get(), slots, records_.get()) {
    for (std::uint32_t id = 1; id < kEndpoints; ++id) next_generation(id);
  }

  std::uint32_t generation(std::uint32_t id) const {
    return abi::LifeWord{records_[id].life.load()}.generation();
  }
  std::uint64_t handle(std::uint32_t id) const { return abi::endpoint_handle(id, generation(id)); }

  // What the endpoint table does to the counts when an endpoint begins anew.
  void next_generation(std::uint32_t id) {
    const std::uint32_t next = generation(id) + 1;
    records_[id].life.store(abi::LifeWord::make(next, 1, 1).bits);
    reset_count(records_[id].inflight_requests, next);
    reset_count(records_[id].inflight_tokens, next);
    reset_count(records_[id].inflight_prompts, next);
  }

  NewReservation reservation(Ticket ticket, std::uint32_t endpoint, std::uint32_t uncached,
                             std::uint64_t tick = 1000) const {
    NewReservation made;
    made.ticket = ticket;
    made.endpoint = handle(endpoint);
    made.uncached_tokens = uncached;
    made.prompt_tokens = uncached;
    made.uid = kUid;
    made.tick = tick;
    return made;
  }
  bool reserve(Ticket ticket, std::uint32_t endpoint, std::uint32_t uncached,
               std::uint64_t tick = 1000) {
    return table_.reserve(reservation(ticket, endpoint, uncached, tick));
  }

  std::uint64_t requests(std::uint32_t id) const {
    return count_of(records_[id].inflight_requests);
  }
  std::uint64_t tokens(std::uint32_t id) const { return count_of(records_[id].inflight_tokens); }
  std::uint64_t prompts(std::uint32_t id) const { return count_of(records_[id].inflight_prompts); }

  std::unique_ptr<abi::Reservation[]> slots_;
  std::unique_ptr<abi::EndpointRecord[]> records_;
  Reservations table_;
};

}  // namespace pickd::endpoints::test

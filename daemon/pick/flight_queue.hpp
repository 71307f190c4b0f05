// FlightQueue: what happened to flights, from the workers to the one thread that learns from it.
//
// A ring of cells, each written in place. A cell belongs to who claimed it until publish(), then to
// the learner until it was taken. Nobody waits: a full ring refuses. An event with little to say
// touches one cache line of its cell.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "abi/limits.hpp"
#include "daemon/endpoints/flight_observer.hpp"
#include "daemon/latency/learner.hpp"

namespace pickd::pick {

class FlightQueue {
 public:
  enum class Kind : std::uint8_t { kPicked, kFirstToken, kEnded };
  struct Event {
    Kind kind = Kind::kEnded;
    std::uint32_t flight = 0;
    std::uint64_t at_ns = 0;
    endpoints::FlightEnd end;  // of kEnded
  };
  static_assert(sizeof(Event) == 32);

  struct alignas(abi::kLinePairBytes) Cell {
    // Of the queue alone. Position: free for the claim of it; + 1: published; + kCells: taken.
    std::atomic<std::uint64_t> turn{0};
    Event event;
    latency::Picked picked;  // of kPicked; else what another event left
  };
  static_assert(sizeof(Cell) == abi::kLinePairBytes);

  FlightQueue() : cells_(std::make_unique<Cell[]>(kCells)) {
    for (std::uint64_t at = 0; at < kCells; ++at)
      cells_[at].turn.store(at, std::memory_order_relaxed);
  }

  // Any thread. nullptr: full.
  Cell* claim() {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    while (true) {
      Cell& cell = cells_[at % kCells];
      // Acquire; partner: the release of take(), after which nobody reads the cell.
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) return &cell;
      } else if (turn < at) {
        return nullptr;
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }
  void publish(Cell* cell) {
    // Only the claimer is here, and its claim left the turn at the position. Release; partner: the
    // acquire of take().
    cell->turn.store(cell->turn.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // The learner only: calls `use(const Cell&)` with the oldest event. False: there is none, or its
  // writer is not done.
  template <typename Use>
  bool take(Use&& use) {
    Cell& cell = cells_[head_ % kCells];
    if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    use(static_cast<const Cell&>(cell));
    cell.turn.store(head_ + kCells, std::memory_order_release);
    ++head_;
    return true;
  }

 private:
  static constexpr std::uint64_t kCells = 16'384;

  std::unique_ptr<Cell[]> cells_;
  alignas(abi::kLinePairBytes) std::atomic<std::uint64_t> tail_{0};
  alignas(abi::kLinePairBytes) std::uint64_t head_ = 0;
};

}  // namespace pickd::pick

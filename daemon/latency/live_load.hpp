// LiveLoad: what stands before a new request at each endpoint and what runs there, from own picks
// and reports, changed by any worker without a lock.
//
// Private memory of the daemon. A request is a *flight* with an index of its own (that of its
// reservation); for one flight the caller makes begin(), first_token() and end() happen in that
// order, one after the other, across threads. draw_down() may come at any time. Different flights
// change at the same time. Flights of an older generation of the endpoint change nothing.
//
// Reports get lost. A request that others overtook for long counts as one whose first token was
// not reported, and leaves the queue; when its report comes after all it changes nothing more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/latency/features.hpp"

namespace pickd::latency {

struct FlightSize {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t uncached_tokens = 0;
  std::uint32_t kv_tokens = 0;  // prompt + half of the expected answer
};

class LiveLoad {
 public:
  LiveLoad(std::uint32_t endpoint_ids, std::uint32_t flights);

  // Fetches what begin() writes to, which is in no cache: flights are numbered by hash.
  void prefetch(std::uint32_t flight) const { __builtin_prefetch(&flights_[flight], 1); }
  // Returns the number under which draw_down() finds this flight, and not a later one.
  std::uint64_t begin(std::uint32_t flight, std::uint32_t endpoint, std::uint32_t generation,
                      const FlightSize& size, std::uint64_t now_ns);
  // False: it had one already, or was drawn down.
  bool first_token(std::uint32_t flight, std::uint64_t now_ns);
  void end(std::uint32_t flight, std::uint64_t now_ns);
  // Another endpoint serves it from now on: it waits there again if it had no first token.
  void move(std::uint32_t flight, std::uint32_t endpoint, std::uint32_t generation,
            std::uint64_t now_ns);

  // Nothing was heard of it for far too long: it counts no more. False: it is not that flight now.
  bool draw_down(std::uint32_t flight, std::uint64_t number, std::uint64_t now_ns);

  // A relaxed look, values may be of slightly different moments. Zero for another generation.
  EndpointLoad load(std::uint32_t endpoint, std::uint32_t generation, std::uint64_t now_ns) const;

 private:
  // How many requests without a first token an endpoint's line remembers in order; more than that
  // are counted, but never become the head.
  static constexpr std::uint32_t kLine = 256;

  // A request that so many later ones overtook, for so long, is taken for one whose report is lost.
  static constexpr std::uint32_t kOvertakenMax = 8;
  static constexpr std::uint64_t kOvertakenNs = 2'000'000'000;

  struct Flight {
    // [ number : 48 ][ waits : 1 ][ endpoint : 15 ]; 0: none. Who changes it by compare-exchange
    // does the accounting of that change.
    std::atomic<std::uint64_t> word{0};
    // Written before the word, read after a look at it: relaxed.
    std::atomic<std::uint64_t> tokens{0};         // [ uncached : 32 ][ prompt : 32 ]
    std::atomic<std::uint64_t> kv_generation{0};  // [ kv tokens : 32 ][ generation : 32 ]
    std::atomic<std::uint32_t> place{0};          // in the line; 0: not in it
  };
  // What a flight said when its word was looked at.
  struct Look {
    FlightSize size;
    std::uint32_t generation = 0;
    std::uint32_t place = 0;
  };

  struct alignas(64) Endpoint {
    std::atomic<std::uint32_t> generation{0};
    std::atomic<std::int32_t> queued_requests{0};
    std::atomic<std::int64_t> queued_tokens{0};
    std::atomic<std::int64_t> queued_work{0};
    std::atomic<std::int64_t> running{0};
    std::atomic<std::int64_t> kv_tokens{0};
    std::atomic<std::int64_t> queued_kv_tokens{0};
    std::atomic<std::uint64_t> head_size{0};  // [ uncached : 32 ][ prompt : 32 ] of the oldest
    std::atomic<std::uint64_t> head_ns{0};

    // The line: entries are [ place : 32 ][ state ], places count up for ever.
    alignas(64) std::atomic<std::uint32_t> head{0};
    std::atomic<std::uint32_t> tail{0};
    // [ overtaken : 32 ][ place : 32 ], of the head.
    std::atomic<std::uint64_t> overtaken{0};
    std::atomic<std::uint64_t> entries[kLine];
    std::atomic<std::uint64_t> sizes[kLine];
    std::atomic<std::uint64_t> since_ns[kLine];
    std::atomic<std::uint32_t> kv_tokens_of[kLine];
  };

  void enter_generation(Endpoint& endpoint, std::uint32_t generation);
  std::uint32_t join_line(Endpoint& endpoint, const FlightSize& size, std::uint64_t now_ns);
  // True: it stood there, and the caller takes it out of the counts.
  bool leave_line(Endpoint& endpoint, std::uint32_t place);
  void move_head(Endpoint& endpoint);
  void drop_overtaken(Endpoint& endpoint, std::uint32_t place, std::uint64_t now_ns);
  static Look look_at(const Flight& flight);
  void leave_queue(const Look& flight, Endpoint& endpoint, std::uint64_t now_ns);
  void leave(const Look& flight, std::uint64_t word, std::uint64_t now_ns);

  std::unique_ptr<Endpoint[]> endpoints_;
  std::unique_ptr<Flight[]> flights_;
  std::uint32_t endpoint_ids_;
  std::atomic<std::uint64_t> next_number_{1};
};

}  // namespace pickd::latency

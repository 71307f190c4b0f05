// LiveLoad: what stands before a new request at each endpoint and what runs there, from own picks
// and reports, changed by any worker without a lock.
//
// Private memory of the daemon. A request is a *flight* with an index of its own (that of its
// reservation); for one flight the caller makes begin(), first_token() and end() happen in that
// order, one after the other, across threads. draw_down() may come at any time. Different flights
// change at the same time. Flights of an older generation of the endpoint change nothing.
//
// Reports get lost and come late. A request that was overtaken when its first token was due for
// long counts as one whose first token was not reported, and leaves the queue; when its report
// comes after all it changes nothing more.
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
  std::uint64_t due_ns = 0;     // its first token should be there long since; 0: nobody knows
};

// An endpoint of one generation; id 0 is none.
struct Place {
  std::uint32_t endpoint = 0;
  std::uint32_t generation = 0;
};

// Where a request is served. With a place for its prefill it waits and is computed there until its
// first token, while the other keeps room for what it will decode.
struct FlightPlaces {
  Place decode;
  Place prefill = {};
};

class LiveLoad {
 public:
  LiveLoad(std::uint32_t endpoint_ids, std::uint32_t flights);

  // Fetches what begin() writes to, which is in no cache: flights are numbered by hash.
  void prefetch(std::uint32_t flight) const { __builtin_prefetch(&flights_[flight], 1); }
  // Returns the number under which draw_down() finds this flight, and not a later one. `followed`:
  // somebody learns from it; see the results of the next ones.
  std::uint64_t begin(std::uint32_t flight, const FlightPlaces& places, const FlightSize& size,
                      bool followed, std::uint64_t now_ns);
  // What became of the call: whether it changed anything (it had a first token already, or was
  // drawn down), and whether the flight is followed.
  struct Change {
    bool counted = false;
    bool followed = false;
  };
  Change first_token(std::uint32_t flight, std::uint64_t now_ns);
  Change end(std::uint32_t flight, std::uint64_t now_ns);
  // Another endpoint serves it from now on, whole: it waits there again if it had no first token.
  // It is followed no more.
  Change move(std::uint32_t flight, Place to, std::uint64_t now_ns);

  // Nothing was heard of it for far too long: it counts no more. False: it is not that flight now.
  bool draw_down(std::uint32_t flight, std::uint64_t number, std::uint64_t now_ns);

  // A relaxed look, values may be of slightly different moments. Zero for another generation.
  EndpointLoad load(std::uint32_t endpoint, std::uint32_t generation, std::uint64_t now_ns) const;
  // Fetches what load() reads.
  void prefetch_load(std::uint32_t endpoint) const { __builtin_prefetch(&endpoints_[endpoint]); }

 private:
  // How many requests without a first token an endpoint's line remembers in order; more than that
  // are counted, but never become the head.
  static constexpr std::uint32_t kLine = 256;

  // A request that so many later ones overtook, for so long, is taken for one whose report is lost;
  // one that is due for long is when one overtook it.
  static constexpr std::uint32_t kOvertakenMax = 3;
  static constexpr std::uint64_t kOvertakenNs = 1'000'000'000;

  struct alignas(64) Flight {
    // [ number : 48 ][ waits : 1 ][ followed : 1 ][ endpoint : 14 ]; 0: none. Who changes it by
    // compare-exchange does the accounting of that change.
    std::atomic<std::uint64_t> word{0};
    // Written before the word, read after a look at it: relaxed.
    std::atomic<std::uint64_t> tokens{0};         // [ uncached : 32 ][ prompt : 32 ]
    std::atomic<std::uint64_t> kv_generation{0};  // [ kv tokens : 32 ][ generation : 32 ]
    std::atomic<std::uint64_t> prefill{0};        // [ generation : 32 ][ endpoint : 32 ]; 0: none
    std::atomic<std::uint32_t> ticket{0};         // its place in the line; 0: not in it
  };
  // What a flight said when its word was looked at.
  struct Look {
    FlightSize size;
    std::uint32_t generation = 0;
    Place prefill;
    std::uint32_t ticket = 0;
  };

  // What a pick reads, side by side: one cache line an endpoint.
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
  };
  // The line of who waits there: entries are [ place : 32 ][ state ], places count up for ever.
  struct alignas(64) Line {
    // No place is 0, so that an entry never written is of no place.
    std::atomic<std::uint32_t> head{1};
    std::atomic<std::uint32_t> tail{1};
    // [ overtaken : 32 ][ place : 32 ], of the head.
    std::atomic<std::uint64_t> overtaken{0};
    std::atomic<std::uint64_t> entries[kLine];
    std::atomic<std::uint64_t> sizes[kLine];
    std::atomic<std::uint64_t> since_ns[kLine];
    std::atomic<std::uint64_t> due_ns[kLine];
    std::atomic<std::uint32_t> kv_tokens_of[kLine];
  };

  // Whose counts of this generation the place has now.
  bool counts(Place place) const {
    return endpoints_[place.endpoint].generation.load(std::memory_order_relaxed) ==
           place.generation;
  }
  void enter_generation(Place place);
  void add_running(Place place, std::int64_t requests, std::int64_t kv_tokens);
  void add_queued(std::uint32_t endpoint, std::int64_t sign, const FlightSize& size);
  std::uint32_t join_line(std::uint32_t endpoint, const FlightSize& size, std::uint64_t now_ns);
  // True: it stood there, and the caller takes it out of the counts.
  static bool leave_line(Line& line, std::uint32_t ticket);
  void move_head(std::uint32_t endpoint);
  void drop_overtaken(std::uint32_t endpoint, std::uint32_t ticket, std::uint64_t now_ns);
  static bool is_lost(Line& line, std::uint32_t head, std::uint64_t now_ns);
  static Look look_at(const Flight& flight);
  void leave_queue(const Look& flight, Place decode, std::uint64_t now_ns);
  void leave(const Look& flight, std::uint64_t word, std::uint64_t now_ns);

  std::unique_ptr<Endpoint[]> endpoints_;
  std::unique_ptr<Line[]> lines_;
  std::unique_ptr<Flight[]> flights_;
  std::uint32_t endpoint_ids_;
  std::atomic<std::uint64_t> next_number_{1};
};

// Here, because a pick does it for every candidate: no branch but the one on the generation, which
// goes the same way for nearly all.
inline EndpointLoad LiveLoad::load(std::uint32_t endpoint_id, std::uint32_t generation,
                                   std::uint64_t now_ns) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto not_below_zero = [](std::int64_t value) {
    return static_cast<float>(value > 0 ? value : 0);
  };
  EndpointLoad load;
  const Endpoint& endpoint = endpoints_[endpoint_id];
  if (endpoint.generation.load(kRelaxed) != generation) return load;
  load.queued_requests = not_below_zero(endpoint.queued_requests.load(kRelaxed));
  load.queued_tokens = not_below_zero(endpoint.queued_tokens.load(kRelaxed));
  load.queued_work = not_below_zero(endpoint.queued_work.load(kRelaxed));
  load.running = not_below_zero(endpoint.running.load(kRelaxed));
  load.kv_tokens = not_below_zero(endpoint.kv_tokens.load(kRelaxed));
  load.queued_kv_tokens = not_below_zero(endpoint.queued_kv_tokens.load(kRelaxed));
  // Without a queue there is no head, and what is read of one is left over.
  const bool queued = load.queued_requests > 0;
  const std::uint64_t head = queued ? endpoint.head_size.load(kRelaxed) : 0;
  const std::uint64_t since = endpoint.head_ns.load(kRelaxed);
  const std::uint64_t age_ns = queued && now_ns > since ? now_ns - since : 0;
  const auto tokens = static_cast<double>(head >> 32);
  load.head_tokens = static_cast<float>(tokens);
  load.head_work =
      static_cast<float>(attention_work(tokens, static_cast<double>(head & 0xFFFFFFFF)));
  load.head_age_s =
      static_cast<float>(static_cast<double>(static_cast<std::int64_t>(age_ns)) * 1e-9);
  return load;
}

}  // namespace pickd::latency

// ItlPromises: the tightest time between tokens that a request in flight at an endpoint was
// promised, so that a later request does not break it.
//
// Changed by any worker without a lock, private memory of the daemon. A request is a *flight* with
// an index of its own (that of its reservation); begin(), move() and end() of one flight come one
// after the other. Without promises an end() reads one flag.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace pickd::latency {

class ItlPromises {
 public:
  ItlPromises(std::uint32_t endpoint_ids, std::uint32_t flights);

  // `itl_ms`: 0 or less: nothing was promised.
  void begin(std::uint32_t flight, std::uint32_t endpoint, float itl_ms);
  void move(std::uint32_t flight, std::uint32_t endpoint);  // another endpoint serves it
  void end(std::uint32_t flight);

  // In milliseconds; infinity: nobody there was promised anything. Exact to 1/64 ms while the
  // requests of about one promise come and go, else low by up to a quarter.
  float tightest_ms(std::uint32_t endpoint) const;

  // Calls `use(count, ms)` with how many in flight there were promised what, by bucket: the
  // tightest of it since it was empty stands for all.
  template <typename Use>
  void each(std::uint32_t endpoint, Use&& use) const {
    const Endpoint& of = endpoints_[endpoint];
    for (std::uint32_t used = of.used.load(std::memory_order_relaxed); used != 0;
         used &= used - 1) {
      const std::uint32_t word = of.buckets[std::countr_zero(used)].load(std::memory_order_relaxed);
      if (word >> kValueBits != 0)
        use(word >> kValueBits, static_cast<float>(word & ((1U << kValueBits) - 1)) / kUnitsPerMs);
    }
  }

 private:
  // A bucket is a quarter of an octave, from 2 to 512 ms; the outer ones take what lies beyond.
  static constexpr std::uint32_t kBuckets = 32;
  static constexpr std::uint32_t kValueBits = 20;
  static constexpr float kUnitsPerMs = 64;

  struct alignas(64) Endpoint {
    // [ count : 12 ][ least since it was empty, in 1/64 ms : 20 ]
    std::atomic<std::uint32_t> buckets[kBuckets];
    // Bit i: bucket i may hold somebody. A stale bit costs a look, a missing one cannot stay.
    std::atomic<std::uint32_t> used{0};
  };

  bool join(std::uint32_t flight, std::uint32_t endpoint, std::uint32_t bucket,
            std::uint32_t value);
  void leave(std::uint32_t endpoint, std::uint32_t bucket);

  std::unique_ptr<Endpoint[]> endpoints_;
  // [ value : 20 ][ endpoint : 12 ]; 0: none. Endpoint 0 is nobody's.
  std::unique_ptr<std::atomic<std::uint32_t>[]> flights_;
  std::uint32_t endpoint_ids_;
  std::uint32_t flight_count_;
  std::atomic<bool> any_{false};  // ever
};

}  // namespace pickd::latency

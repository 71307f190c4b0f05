// Random: a fast generator for ties and jitter (splitmix64 of a Weyl sequence; not for secrets),
// and random bytes from the system for everything that must not be guessed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pickd::base {

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9E3779B97F4A7C15ULL);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31);
  }

  // Uniform in [0, bound): multiply-shift; for the bounds used here the bias is below 2^-50.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

// Fills `bytes` from getrandom(2); aborts when the system has none (it always has after boot).
void random_bytes(void* bytes, std::size_t size);
std::uint64_t random_u64();

}  // namespace pickd::base

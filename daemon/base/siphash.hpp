// SipHash of two words under a secret key: for tables whose keys a stranger chooses. Who does not
// know the key can neither compute where something will stand nor make many stand in one place.
#pragma once

#include <cstdint>

namespace pickd::base {

struct SipKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// SipHash-C-D of the 16 bytes of `first` and `second`, little-endian. 1-3 is what hash tables use.
template <int kCompressions = 1, int kFinalizations = 3>
constexpr std::uint64_t siphash(const SipKey& key, std::uint64_t first, std::uint64_t second) {
  std::uint64_t a = key.first ^ 0x736F6D6570736575ULL;
  std::uint64_t b = key.second ^ 0x646F72616E646F6DULL;
  std::uint64_t c = key.first ^ 0x6C7967656E657261ULL;
  std::uint64_t d = key.second ^ 0x7465646279746573ULL;
  const auto turn = [](std::uint64_t word, int bits) {
    return (word << bits) | (word >> (64 - bits));
  };
  const auto rounds = [&](int count) {
    for (int round = 0; round < count; ++round) {
      a += b;
      b = turn(b, 13) ^ a;
      a = turn(a, 32);
      c += d;
      d = turn(d, 16) ^ c;
      a += d;
      d = turn(d, 21) ^ a;
      c += b;
      b = turn(b, 17) ^ c;
      c = turn(c, 32);
    }
  };
  constexpr std::uint64_t kLength = std::uint64_t{16} << 56;
  for (const std::uint64_t word : {first, second, kLength}) {
    d ^= word;
    rounds(kCompressions);
    a ^= word;
  }
  c ^= 0xFF;
  rounds(kFinalizations);
  return a ^ b ^ c ^ d;
}

}  // namespace pickd::base

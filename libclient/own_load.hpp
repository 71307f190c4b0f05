// OwnLoad: what this client has put on each endpoint by degraded picks, which no daemon knows of:
// prefill, which ends with the first token, and the rest. An entry ends with a report, and by
// itself after kLifeNs: not every caller reports. One thread at a time.
#pragma once

#include <cstdint>

#include "abi/limits.hpp"

namespace pickd::client {

class OwnLoad {
 public:
  // As long as a request may well take; afterwards it must not keep others away.
  static constexpr std::uint64_t kLifeNs = 30'000'000'000;

  std::uint64_t tokens(std::uint32_t endpoint) const { return tokens_[endpoint]; }

  // Notes pick `sequence`. An older one in its place is forgotten: 4,096 in flight are as many as
  // are worth telling apart.
  void add(std::uint64_t sequence, std::uint32_t endpoint, std::uint64_t prefill,
           std::uint64_t decode, std::uint64_t now_ns);
  bool has(std::uint64_t sequence) const;
  // Its prefill is over. Another endpoint serves it now. Both do nothing when it is not known.
  void first_token(std::uint64_t sequence);
  void move(std::uint64_t sequence, std::uint32_t endpoint);
  // False when it is not known (any more).
  bool end(std::uint64_t sequence);
  // Forgets what is older than kLifeNs; looks at most once a second.
  void age(std::uint64_t now_ns);
  void clear();

 private:
  struct Entry {
    std::uint64_t sequence;  // 0: free
    std::uint64_t since_ns;
    std::uint64_t prefill;
    std::uint64_t decode;
    std::uint32_t endpoint;
  };
  static constexpr std::uint64_t kEntries = 4096;

  Entry& place_of(std::uint64_t sequence) { return entries_[sequence % kEntries]; }
  void forget(Entry& entry);

  Entry entries_[kEntries] = {};
  std::uint64_t tokens_[abi::kEndpointIdsMax] = {};
  std::uint64_t aged_ns_ = 0;
};

}  // namespace pickd::client

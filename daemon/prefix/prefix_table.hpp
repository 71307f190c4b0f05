// PrefixTable: who holds which block. A view of shared words; see abi/prefix_word.hpp for their
// layout.
//
// A word is one (block, endpoint). A key has two lines of eight words and every look reads both, so
// a word may become zero at any time and every state of the memory is valid. Every change is one
// compare-exchange of one word, forward only in time. Whether a word lives is decided by its stamp
// and the life word of its endpoint alone: raising a horizon forgets any number of blocks at once.
//
// It may not read a clock, allocate, block or do I/O: ticks come in as arguments (their low 20 bits
// count). All functions may be called from any number of threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "abi/prefix_word.hpp"
#include "abi/state_layout.hpp"
#include "daemon/prefix/ages.hpp"
#include "daemon/prefix/match_scratch.hpp"

namespace pickd::prefix {

// The shared memory of a table. All of it must outlive everything made from these parts.
struct TableParts {
  std::atomic<std::uint64_t>* words = nullptr;  // lines * 8, each line on a cache line of its own
  std::uint64_t lines = 0;                      // even, 2 to 2^32
  abi::EndpointRecord* records = nullptr;       // by endpoint id
  std::uint32_t endpoint_ids = 0;               // records, id 0 included; at most kEndpointIdsMax
  std::atomic<std::uint64_t>* global_horizon = nullptr;  // full-width tick; what markers live by
  std::uint32_t hot_holders =
      10;  // live holders in the home lines from which a block is hot; 0 = never
};

struct StampOutcome {
  std::uint32_t inserted = 0;     // words that are new
  std::uint32_t touched = 0;      // words that were there (a dead one of this endpoint included)
  std::uint32_t replaced = 0;     // of the inserted: those that took a live word's place
  std::uint32_t hot_markers = 0;  // blocks that became hot
  std::uint32_t left_out = 0;     // keys at the end of the chain for which the load left no room

  StampOutcome& operator+=(const StampOutcome& other) {
    inserted += other.inserted;
    touched += other.touched;
    replaced += other.replaced;
    hot_markers += other.hot_markers;
    left_out += other.left_out;
    return *this;
  }
};

// The stamp of a pick that read `tick` before the candidates and then saw `seen`: max(tick, floor).
// What is stamped so for a generation that is reset meanwhile lies below the new floor.
constexpr std::uint32_t stamp_at(std::uint64_t tick, abi::LifeWord seen) {
  const auto now = static_cast<std::uint32_t>(tick) & abi::kStampMask;
  return abi::newer_stamp(now, seen.floor(), now);
}

class PrefixTable {
 public:
  // `ages` learns what stamp() and remove() change; null in readers and where no capacity is kept.
  explicit PrefixTable(const TableParts& parts, Ages* ages = nullptr)
      : parts_(parts), ages_(ages) {}

  // For each candidate the number of leading keys that it holds, by gallop and bisection on sets of
  // candidates: about 8 to 16 looks for any length. Exact while each candidate's keys have no hole;
  // a hole may be passed over.
  //
  // `ids`: endpoint ids, each in [1, endpoint_ids), at most 4,095, none twice. `lives`: bits of the
  // LifeWord that the pick read for each; assumed words are judged by it. Words confirmed by events
  // are judged by the record's confirmed_life, read when one is met. `match_blocks`: one for each
  // id.
  void match(std::span<const std::uint64_t> keys, std::uint32_t now_stamp,
             std::span<const std::uint16_t> ids, std::span<const std::uint64_t> lives,
             std::span<std::uint32_t> match_blocks, MatchScratch& scratch) const;

  // The same, looking at every key until no candidate is left: exact when there are holes.
  void match_exact(std::span<const std::uint64_t> keys, std::uint32_t now_stamp,
                   std::span<const std::uint16_t> ids, std::span<const std::uint64_t> lives,
                   std::span<std::uint32_t> match_blocks, MatchScratch& scratch) const;

  // Fetches the lines that match() looks at first, and those with which stamp() begins. For callers
  // that know the keys before the rest; any keys will do.
  void prefetch(std::span<const std::uint64_t> keys) const;
  // As many keys as prefetch() has a use for, but for the few that match() looks at farther behind.
  static constexpr std::size_t kFirstKeys = 16;

  // Stamps every key for one endpoint. A word that is there is touched, forward only; else a free
  // or dead word of the emptier line is taken, else the oldest of the sixteen. A pick never makes a
  // live confirmed word an assumed one; a confirmed tier always takes over. Nothing happens for an
  // id out of range and for a stamp older than the endpoint's horizon. Where so much came since the
  // horizons last moved that the load is at kLoadEnd, the rest of the chain is left out: what is
  // held stays closed under "parent of".
  StampOutcome stamp(std::span<const std::uint64_t> keys, std::uint32_t endpoint,
                     std::uint32_t stamp, abi::Tier tier, std::uint32_t now_stamp);

  // Takes every copy of (key, endpoint) out; returns how many there were, dead ones included.
  std::uint32_t remove(std::uint64_t key, std::uint32_t endpoint, std::uint32_t now_stamp);

  const TableParts& parts() const { return parts_; }

 private:
  TableParts parts_;
  Ages* ages_;
};

}  // namespace pickd::prefix

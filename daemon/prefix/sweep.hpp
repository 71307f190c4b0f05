// Sweep: gives the words of the dead back, restamps what must outlive the wrap, and counts what
// lives, a slice at a time. For the maintenance thread only, the one that also calls Horizons.
//
// It is never needed for a right answer (a dead word is dead wherever it stands), only for room,
// for exact counts, and for a whole pass within kSweepPassTicksMax: a dead stamp must be gone
// before the 20 bits come round.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/prefix/ages.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/prefix_table.hpp"

namespace pickd::prefix {

inline constexpr std::uint64_t kSweepPassTicksMax = 20 * 60 * 20;  // 20 minutes
static_assert(kTtlTicksMax + 2 * kSweepPassTicksMax < abi::kStampMask - abi::kAheadTicks);

struct SweepOutcome {
  std::uint64_t looked = 0;     // words
  std::uint64_t cleared = 0;    // dead words given back
  std::uint64_t restamped = 0;  // confirmed words and markers brought forward
  std::uint32_t passes = 0;     // whole passes that ended here
};

// What the last whole pass saw.
struct SweepTotals {
  std::uint64_t words = 0;             // of the table
  std::uint64_t live = 0;              // of endpoints
  std::uint64_t confirmed = 0;         // of the live ones
  std::uint64_t markers = 0;           // live: blocks that are hot
  std::uint64_t dead = 0;              // cleared on the way
  std::uint32_t oldest_age_ticks = 0;  // of a live word
  std::uint64_t passes = 0;            // since the start; 0 = the rest is not known yet
};

class Sweep {
 public:
  Sweep(const TableParts& parts, Ages& ages, Horizons& horizons);

  // Looks at the next `lines` lines, round and round. At the end of a pass the counts of Ages are
  // set right and every record's live_blocks is stored. `now_tick`: full width, as given to
  // advance().
  SweepOutcome slice(std::uint64_t now_tick, std::uint64_t lines);

  // Lines for the slice of one tick: a pass in 20 s, faster when the table fills up, and all of it
  // at once until a first pass has counted.
  std::uint64_t lines_per_tick() const;

  const SweepTotals& totals() const { return totals_; }
  std::uint64_t live_words(std::uint32_t endpoint) const { return live_[endpoint]; }

 private:
  void read_horizons();
  void sweep_line(std::atomic<std::uint64_t>* line);
  void sweep_batch(std::atomic<std::uint64_t>* lines);
  void sweep_words(std::atomic<std::uint64_t>* lines, std::uint64_t occupied);
  void clear(std::atomic<std::uint64_t>* lines, const abi::PrefixWord* words, std::uint64_t dead);
  abi::PrefixWord bring_forward(std::atomic<std::uint64_t>& at, abi::PrefixWord word);
  void end_pass();

  TableParts parts_;
  Ages& ages_;
  Horizons& horizons_;
  std::uint64_t next_line_ = 0;
  // Of the running slice. By kind: endpoint, plus kEndpointIdsMax for confirmed words.
  std::int64_t now_tick_ = 0;
  std::uint32_t now_ = 0;
  std::uint32_t oldest_ = 0;                 // stamps are ordered by their distance from this one
  std::vector<std::uint32_t> limits_;        // distance from which words of a kind live
  std::vector<EndpointAges*> kinds_;         // null = not used
  std::vector<std::uint8_t> needs_forward_;  // 1: words of the kind outlive the wrap
  std::uint32_t oldest_age_ = 0;
  SweepOutcome outcome_;
  bool clears_pairs_;

  std::vector<std::uint64_t> live_;  // by endpoint, of the last pass
  SweepTotals running_;
  SweepTotals totals_;
};

}  // namespace pickd::prefix

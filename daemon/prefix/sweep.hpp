// Sweep: gives the words of the dead back, restamps what must outlive the wrap, and counts what
// lives, a slice at a time. For the maintenance thread only, the one that also calls Horizons.
//
// It is never needed for a right answer (a dead word is dead wherever it stands), only for room,
// for exact counts, and for a whole pass within kSweepPassTicksMax: a dead stamp must be gone
// before the 20 bits come round. Dead words of less than some hours stay in lines with room: a
// stamper takes them like empty ones.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/prefix/ages.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/line_scan.hpp"
#include "daemon/prefix/prefix_table.hpp"

namespace pickd::prefix {

inline constexpr std::uint64_t kSweepPassTicksMax = 20 * 60 * 20;  // 20 minutes
static_assert(kTtlTicksMax + 2 * kSweepPassTicksMax < abi::kStampMask - abi::kAheadTicks);

struct SweepOutcome {
  std::uint64_t looked = 0;     // words
  std::uint64_t cleared = 0;    // dead words made empty
  std::uint64_t restamped = 0;  // confirmed words and markers brought forward
  std::uint32_t passes = 0;     // whole passes that ended here

  SweepOutcome& operator+=(const SweepOutcome& other) {
    looked += other.looked;
    cleared += other.cleared;
    restamped += other.restamped;
    passes += other.passes;
    return *this;
  }
};

// What the last whole pass saw.
struct SweepTotals {
  std::uint64_t words = 0;             // of the table
  std::uint64_t live = 0;              // of endpoints
  std::uint64_t confirmed = 0;         // of the live ones
  std::uint64_t markers = 0;           // live: blocks that are hot
  std::uint64_t dead = 0;              // left where they stand; as good as empty
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
  void sweep_words(std::atomic<std::uint64_t>* lines, std::uint64_t occupied,
                   std::uint64_t forgotten, std::uint64_t old);
  void clear(std::atomic<std::uint64_t>* lines, std::uint64_t dead);
  // From the oldest stamp that there can be at this slice's time.
  std::uint32_t distance(abi::PrefixWord word) const {
    return (word.stamp() - oldest_) & abi::kStampMask;
  }
  static std::uint32_t kind_of(abi::PrefixWord word) {
    return word.endpoint() + (word.tier() == abi::Tier::kAssumed ? 0 : abi::kEndpointIdsMax);
  }
  bool is_dead(abi::PrefixWord word) const {
    return !word.empty() && distance(word) < limits_[kind_of(word)];
  }
  abi::PrefixWord bring_forward(std::atomic<std::uint64_t>& at, abi::PrefixWord word);
  void end_pass();

  TableParts parts_;
  Ages& ages_;
  Horizons& horizons_;
  std::uint64_t next_line_ = 0;
  // Of the running slice. By kind: endpoint, plus kEndpointIdsMax for confirmed words.
  std::int64_t now_tick_ = 0;
  std::uint32_t now_ = 0;
  std::uint32_t oldest_ = 0;  // stamps are ordered by their distance from this one
  AgeLimits age_limits_{};
  std::vector<std::uint32_t> limits_;        // distance from which words of a kind live
  std::vector<EndpointAges*> kinds_;         // null = not used
  std::vector<std::uint8_t> needs_forward_;  // 1: words of the kind outlive the wrap
  std::uint32_t oldest_age_ = 0;
  SweepOutcome outcome_;
  bool clears_pairs_;
  bool has_room_ = false;  // the dead may stay where their line has room

  std::vector<std::uint64_t> live_;  // by endpoint, of the last pass
  SweepTotals running_;
  SweepTotals totals_;
};

// For a clock that leapt (the machine slept): horizons and whole passes in steps up to `to`, so
// that no dead word's stamp comes round before the sweep has seen it. `from`: the tick of the last
// advance(). Where nothing leapt it does nothing; the caller goes on with advance() and slice().
SweepOutcome follow_leap(Horizons& horizons, Sweep& sweep, std::uint64_t from, std::uint64_t to,
                         std::uint64_t ttl_ticks, std::uint32_t ids_end, std::uint64_t lines);

}  // namespace pickd::prefix

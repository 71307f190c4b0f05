// Horizons: decides what is forgotten, and forgets it by raising the life words. For the
// maintenance thread only (one caller at a time); stampers, readers and resets go on meanwhile.
//
// An endpoint's horizon is the newest of: its floor, now - TTL, the cut-off that keeps it within
// its capacity, the global cut-off that keeps the load of the table down. It never goes back.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/prefix/ages.hpp"
#include "daemon/prefix/prefix_table.hpp"

namespace pickd::prefix {

// The longest TTL: 12 hours. What is dead must be swept before its stamp would be taken for a new
// one, at seven eighths of the wrap, 44 minutes later; so must a daemon that comes back after a
// longer time than that (its longest TTL counted in) start with an empty table.
inline constexpr std::uint64_t kTtlTicksMax = 12ULL * 3600 * 20;
// Confirmed words and markers that get older than this are restamped by the sweep: half the wrap.
inline constexpr std::uint32_t kRestampAgeTicks = 1U << (abi::kStampBits - 1);
// They are restamped to points this far apart, so that each is written once in a while, not every
// pass.
inline constexpr std::uint32_t kRestampGridTicks = 1U << 14;

// Shares of all words: from where the global cut-off acts, and to where it cuts.
inline constexpr double kLoadMax = 0.75;
inline constexpr double kLoadCut = 0.74;
// Beyond this share nothing is stamped that is not there, until the next move of the horizons.
inline constexpr double kLoadEnd = 0.76;

// Which rule set a horizon.
enum class HorizonRule : std::uint8_t {
  kNone = 0,
  kFloor = 1,
  kTtl = 2,
  kCapacity = 3,
  kGlobal = 4,
  kKept = 5,  // as a daemon before this one left it
};
const char* horizon_rule_name(HorizonRule rule);

class Horizons {
 public:
  Horizons(const TableParts& parts, Ages& ages);

  // Moves every horizon to where it belongs at `now_tick` (full width, never less than before).
  // Call it once a tick. `ttl_ticks`: of assumed words, 1 to kTtlTicksMax (clamped); 0 = the
  // longest. `ids_end`: ids at or above it were never used; 0 = look at all.
  // A life word that a reset changes at the same moment is left to the next call.
  void advance(std::uint64_t now_tick, std::uint64_t ttl_ticks, std::uint32_t ids_end = 0);

  // Has the next advance() count every endpoint, so that what it believes is exact.
  void recount();

  // What the last advance() believed. Between two counts of an endpoint (3 s) it is an upper bound:
  // every word that was stamped counts as one that came.
  double live_words() const { return live_total_; }
  double load() const {
    return live_total_ / static_cast<double>(parts_.lines * abi::kWordsPerLine);
  }
  double live_words(std::uint32_t endpoint) const { return endpoints_[endpoint].live; }
  HorizonRule rule(std::uint32_t endpoint) const { return endpoints_[endpoint].rule; }
  std::uint64_t global_cuts() const { return global_cuts_; }

  // The sweep tells whether any confirmed word exists: then markers must outlast the TTL.
  void set_confirmed_words(bool any) { confirmed_words_ = any; }
  bool confirmed_words() const { return confirmed_words_; }

 private:
  struct Endpoint {
    double live = 0;
    std::int64_t counted_from = 0;            // full tick from which words count, at the last look
    std::int64_t confirmed_counted_from = 0;  // the same for confirmed words
    std::int64_t capacity_cut = -1;           // full tick, -1 = none yet
    HorizonRule rule = HorizonRule::kNone;
    bool fresh = false;  // counted once; `live` is a bound from then on
  };

  void advance_to(std::int64_t now_tick, std::uint64_t ttl_ticks, std::uint32_t ids_end);
  double look_at(std::uint32_t endpoint);
  double count(std::uint32_t endpoint);
  void cut_globally(std::uint32_t ids_end);
  void raise(std::uint32_t endpoint);
  std::int64_t full_tick(std::uint32_t stamp) const;  // of a stamp of the past (or a little ahead)
  std::int64_t counted_from(abi::LifeWord life) const;

  TableParts parts_;
  Ages& ages_;
  std::vector<Endpoint> endpoints_;
  std::int64_t now_ = 0;
  std::int64_t ttl_ = 0;
  std::int64_t global_cut_ = -1;
  double live_total_ = 0;
  double live_before_ = 0;
  double growth_ = 0;  // words between two calls, lately
  std::uint64_t global_cuts_ = 0;
  bool confirmed_words_ = true;  // until a whole pass of the sweep has seen none
};

}  // namespace pickd::prefix

// Ages: how many live words of which age each endpoint has. Stampers tell it, the horizons ask it,
// and every pass of the sweep corrects it. Private to the daemon; knows nothing of keys, lines or
// clocks.
//
// Four rings of 256 buckets an endpoint, of 1, 16, 256 and 4,096 ticks; a word is counted in every
// ring that reaches back to its stamp, so nothing needs to move when time passes: a ring only
// forgets. A pass of the sweep counts anew (`seen`, each word in the finest ring only, for speed);
// what stampers change behind its back in lines that it has passed already is kept apart (`moved`),
// so that at the end seen + moved is the truth.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "abi/limits.hpp"
#include "abi/prefix_word.hpp"

namespace pickd::prefix {

inline constexpr std::uint32_t kAgeLevels = 4;
inline constexpr std::uint32_t kAgeBuckets = 256;
inline constexpr std::uint32_t kAgeLevelBits = 4;  // a level's buckets are 2^(4 * level) ticks wide

// Buckets of a ring that are emptied before their time comes: so late may the maintenance be.
inline constexpr std::uint32_t kAgeAheadTicks = 24;
constexpr std::int64_t age_ahead_buckets(std::uint32_t level) {
  return (kAgeAheadTicks >> (level * kAgeLevelBits)) + 1;
}
// A ring tells the truth about this many buckets, the current one included.
constexpr std::int64_t age_reach_buckets(std::uint32_t level) {
  return kAgeBuckets - age_ahead_buckets(level);
}

constexpr std::uint32_t age_bucket(std::uint32_t level, std::int64_t tick) {
  return level * kAgeBuckets +
         (static_cast<std::uint32_t>(tick >> (level * kAgeLevelBits)) & (kAgeBuckets - 1));
}

// Calls `visit(level, bucket index)` for every ring that reaches from `now` back to `stamp`.
template <typename Visit>
inline void for_each_age_bucket(std::uint32_t stamp, std::uint32_t now, Visit&& visit) {
  const std::uint32_t age = abi::stamp_age(stamp, now);
  for (std::uint32_t level = kAgeLevels; level-- > 0;) {
    if (age >= age_reach_buckets(level) << (level * kAgeLevelBits)) break;
    visit(age_bucket(level, stamp));
  }
}

using AgeCounts = std::array<std::int32_t, kAgeLevels * kAgeBuckets>;

// One endpoint's counts for one kind of word.
class EndpointAges {
 public:
  // Any thread. `delta` words of `stamp` came (or went), `passed` of them in lines that the running
  // pass of the sweep has left behind. Relaxed: counts are estimates, nothing is published through
  // them.
  void add(std::uint32_t stamp, std::uint32_t now, std::int32_t delta, std::int32_t passed);

  // ---- Maintenance thread only ----
  void turn(std::int64_t now);                        // empties the buckets whose time has come
  void saw(std::uint32_t stamp, std::uint32_t age) {  // in the running pass
    std::uint32_t level = 0;
    for (std::uint32_t finer = 0; finer + 1 < kAgeLevels; ++finer) {
      level += age >= age_reach_buckets(finer)
                          << (finer * kAgeLevelBits);  // no branch: ages are random
    }
    ++seen_[age_bucket(level, stamp)];
  }
  std::uint64_t end_pass();              // the pass's counts become the truth; how many it saw
  void add_to(AgeCounts& counts) const;  // adds what is believed to `counts`
  // Words that were stamped since the last call: so many may have come to life at most. True in
  // `corrected`: a pass ended since, count anew.
  std::uint32_t take_stamped(bool& corrected) {
    corrected |= std::exchange(corrected_, false);
    return stamped_.load(std::memory_order_relaxed) == 0
               ? 0
               : stamped_.exchange(0, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::int32_t>, kAgeLevels * kAgeBuckets> counted_{};
  std::array<std::atomic<std::int32_t>, kAgeLevels * kAgeBuckets> moved_{};
  AgeCounts seen_{};
  std::int64_t turned_ = -1;
  bool corrected_ = false;
  alignas(abi::kCacheLineBytes) std::atomic<std::uint32_t> stamped_{0};
};

// A cut through an endpoint's ages.
struct AgeCut {
  std::int64_t tick;  // words before it go
  double live;        // words at or after it
};

// Words at or after `horizon`; a bucket that it cuts counts by the share that is left of it.
double count_live(const AgeCounts& counts, std::int64_t now, std::int64_t horizon);

// The cut that leaves at most `limit` words, never cutting the newest bucket that is not empty.
// `horizon` itself when no cut is needed.
AgeCut cut_to_limit(const AgeCounts& counts, std::int64_t now, std::int64_t horizon, double limit);

// Adds the words of `counts` that live under `horizon` to `sum`.
void add_live(const AgeCounts& counts, std::int64_t now, std::int64_t horizon, AgeCounts& sum);

// The ages of every endpoint. Memory comes with an endpoint's first use and stays (12 KiB each).
class Ages {
 public:
  // `endpoint_ids`: records of the endpoint table, id 0 (markers) included.
  explicit Ages(std::uint32_t endpoint_ids);

  std::uint32_t endpoint_ids() const { return endpoint_ids_; }

  // Any thread; null until the maintenance has made it (the next pass counts what came before).
  // Asking for a missing one orders it.
  EndpointAges* find(std::uint32_t endpoint, bool confirmed) {
    Slot& slot = slots_[index(endpoint, confirmed)];
    // Acquire: pairs with the release in make(), so the counts are seen constructed.
    EndpointAges* ages = slot.ages.load(std::memory_order_acquire);
    if (ages == nullptr) slot.wanted.store(true, std::memory_order_relaxed);
    return ages;
  }

  // ---- Maintenance thread (make: also before other threads start) ----
  EndpointAges* existing(std::uint32_t endpoint, bool confirmed) const {
    return slots_[index(endpoint, confirmed)].ages.load(std::memory_order_relaxed);
  }
  bool wanted(std::uint32_t endpoint, bool confirmed) const {
    return slots_[index(endpoint, confirmed)].wanted.load(std::memory_order_relaxed);
  }
  EndpointAges& make(std::uint32_t endpoint, bool confirmed, std::int64_t now);

  // How many words may come to life before the horizons move again. Stampers stop there: between
  // two moves nobody else holds the load down. Relaxed, both: with W stampers at once it is
  // overdrawn by at most W - 1 prompts. Without horizons there is no end.
  std::int64_t room() const {
    return room_end_.load(std::memory_order_relaxed) -
           static_cast<std::int64_t>(came_.load(std::memory_order_relaxed));
  }
  void take_room(std::uint32_t words) { came_.fetch_add(words, std::memory_order_relaxed); }
  // Maintenance thread: `room` words from where came() stood when it began to count.
  std::int64_t came() const {
    return static_cast<std::int64_t>(came_.load(std::memory_order_relaxed));
  }
  void set_room(std::int64_t came, std::int64_t room) {
    room_end_.store(came + room, std::memory_order_relaxed);
  }

  // First line that the running pass of the sweep has not left behind. Relaxed: an error of a few
  // lines is an error of a few counts, until the next pass.
  std::uint64_t swept_lines() const { return swept_lines_.load(std::memory_order_relaxed); }
  void set_swept_lines(std::uint64_t lines) {
    swept_lines_.store(lines, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<EndpointAges*> ages{nullptr};
    std::atomic<bool> wanted{false};
  };
  std::size_t index(std::uint32_t endpoint, bool confirmed) const {
    return endpoint + (confirmed ? endpoint_ids_ : 0);
  }

  std::uint32_t endpoint_ids_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<EndpointAges>> owned_;
  alignas(abi::kLinePairBytes) std::atomic<std::uint64_t> swept_lines_{0};
  std::atomic<std::int64_t> room_end_{std::int64_t{1} << 62};
  alignas(abi::kLinePairBytes) std::atomic<std::uint64_t> came_{0};  // words, ever
};

}  // namespace pickd::prefix

// Sweep: one line after the other. See sweep.hpp.
#include "daemon/prefix/sweep.hpp"

#include <algorithm>
#include <bit>

#include "daemon/base/step.hpp"
#include "daemon/prefix/line_scan.hpp"

namespace pickd::prefix {
namespace {

constexpr std::uint64_t kPassTicks = 400;      // 20 s
constexpr std::uint64_t kPassTicksFull = 100;  // 5 s, when words are scarce
constexpr double kScarceLoad = 0.65;

constexpr std::size_t kKinds = 2 * std::size_t{abi::kEndpointIdsMax};
constexpr std::uint32_t kBatchLines = 8;  // their words are the bits of one number
static_assert(kBatchLines * abi::kWordsPerLine == 64);
constexpr std::uint64_t kFirstOfPairs = 0x5555555555555555;

// A dead word is as good as an empty one to a stamper that finds no other; so in a line with room
// it may stay, which spares the write. It is cleared where room is scarce, so that stampers need
// not tell the dead from the living; in a table that is filled beyond kRoomLoad, where they must
// see which of two lines is the emptier (else up to twice as many live words are replaced); and
// before its stamp gets old.
constexpr double kRoomLoad = 0.4;
constexpr std::uint32_t kRoomWords = 4;
constexpr std::uint32_t kDeadAgeTicksMax = 1U << (abi::kStampBits - 2);  // 3.6 h
// By then it must have been cleared, and a daemon may be away for an hour meanwhile, or a reader
// go on without one for 3/8 of the wrap.
static_assert(kDeadAgeTicksMax + 2 * kSweepPassTicksMax + 3 * (1U << (abi::kStampBits - 3)) <
              abi::kStampMask - abi::kAheadTicks);

// All the bits of each line, a byte, that has fewer than kRoomWords bits not set.
constexpr std::uint64_t kAddCrowded =
    (0x80 - (abi::kWordsPerLine - kRoomWords + 1)) * 0x0101010101010101;
PICKD_INLINE std::uint64_t crowded_lines(std::uint64_t occupied) {
  const std::uint64_t crowded = (count_bits_of_bytes(occupied) + kAddCrowded) & 0x8080808080808080;
  return (crowded >> 7) * 0xFF;
}

constexpr std::uint32_t kNeverLives = abi::kStampMask + 1;  // words of endpoints that do not exist

}  // namespace

Sweep::Sweep(const TableParts& parts, Ages& ages, Horizons& horizons)
    : parts_(parts),
      ages_(ages),
      horizons_(horizons),
      limits_(kKinds, kNeverLives),
      kinds_(kKinds, nullptr),
      needs_forward_(kKinds, 0),
      clears_pairs_(can_clear_pairs()),
      live_(abi::kEndpointIdsMax) {
  std::fill(needs_forward_.begin() + abi::kEndpointIdsMax, needs_forward_.end(), 1);
}

std::uint64_t Sweep::lines_per_tick() const {
  if (totals_.passes == 0) return parts_.lines;
  const std::uint64_t ticks = horizons_.load() > kScarceLoad ? kPassTicksFull : kPassTicks;
  return parts_.lines / ticks + 1;
}

SweepOutcome Sweep::slice(std::uint64_t now_tick, std::uint64_t lines) {
  now_tick_ = static_cast<std::int64_t>(now_tick);
  now_ = static_cast<std::uint32_t>(now_tick) & abi::kStampMask;
  outcome_ = {};
  read_horizons();
  lines = std::min(lines, parts_.lines);
  for (std::uint64_t left = lines; left != 0;) {
    WordRef at = parts_.words + next_line_ * abi::kWordsPerLine;
    std::uint64_t swept = kBatchLines;
    if (std::min(left, parts_.lines - next_line_) >= kBatchLines) {
      sweep_batch(at);
    } else {
      swept = 1;
      sweep_line(at);
    }
    left -= swept;
    next_line_ += swept;
    if (next_line_ % 64 == 0) ages_.set_swept_lines(next_line_);
    if (next_line_ == parts_.lines) {
      next_line_ = 0;
      ++outcome_.passes;
      end_pass();
    }
  }
  ages_.set_swept_lines(next_line_);
  outcome_.looked = lines * abi::kWordsPerLine;
  return outcome_;
}

// The horizons of this slice. One that rises meanwhile only leaves a dead word to the next pass.
void Sweep::read_horizons() {
  oldest_ = now_ + abi::kAheadTicks + 1;
  has_room_ = horizons_.load() <= kRoomLoad;
  age_limits_ = {kNeverLives, (now_ - kDeadAgeTicksMax - oldest_) & abi::kStampMask};
  const auto limit = [this](std::uint64_t horizon) {
    return (static_cast<std::uint32_t>(horizon) - oldest_) & abi::kStampMask;
  };
  for (std::uint32_t endpoint = 1; endpoint < parts_.endpoint_ids; ++endpoint) {
    const abi::EndpointRecord& record = parts_.records[endpoint];
    const abi::LifeWord life{record.life.load(std::memory_order_acquire)};
    // Acquire: partners are Horizons (this thread) and the reset of the endpoint table.
    limits_[endpoint] = limit(life.horizon());
    // Nobody stamps for an id that was never used.
    if (life.bits != 0) age_limits_.forgotten = std::min(age_limits_.forgotten, limits_[endpoint]);
    limits_[endpoint + abi::kEndpointIdsMax] =
        limit(abi::LifeWord{record.confirmed_life.load(std::memory_order_acquire)}.horizon());
    kinds_[endpoint] = ages_.existing(endpoint, false);
    kinds_[endpoint + abi::kEndpointIdsMax] = ages_.existing(endpoint, true);
  }
  limits_[abi::kMarkerEndpoint] = limit(parts_.global_horizon->load(std::memory_order_acquire));
  limits_[abi::kEndpointIdsMax] = limits_[abi::kMarkerEndpoint];
  kinds_[abi::kMarkerEndpoint] = ages_.existing(abi::kMarkerEndpoint, false);
  needs_forward_[abi::kMarkerEndpoint] = horizons_.confirmed_words();
}

// What is left of a slice or of the table.
__attribute__((noinline)) void Sweep::sweep_line(std::atomic<std::uint64_t>* line) {
  std::uint64_t occupied = 0;
  std::uint64_t old = 0;
  for (std::uint32_t at = 0; at < abi::kWordsPerLine; ++at) {
    const abi::PrefixWord word{line[at].load(std::memory_order_relaxed)};
    occupied |= std::uint64_t{!word.empty()} << at;
    old |= std::uint64_t{distance(word) < age_limits_.old} << at;
  }
  sweep_words(line, occupied, 0, old);
}

// Eight lines at once: a loop over the words of one line ends where nobody can guess, and the wrong
// guess costs more than all the rest.
PICKD_INLINE void Sweep::sweep_batch(std::atomic<std::uint64_t>* lines) {
  std::uint64_t occupied = 0;
  std::uint64_t forgotten = 0;
  std::uint64_t old = 0;
  for (std::uint32_t first = 0; first < 64; first += kWordsPerPlace) {
    occupied |= std::uint64_t{occupied_words(lines + first)} << first;
    const AgeScan ages = scan_ages(lines + first, oldest_, age_limits_);
    forgotten |= std::uint64_t{ages.forgotten} << first;
    old |= std::uint64_t{ages.old} << first;
  }
  sweep_words(lines, occupied, forgotten & occupied, old);
}

// `forgotten`: words that are dead whoever's they are.
PICKD_INLINE void Sweep::sweep_words(std::atomic<std::uint64_t>* lines, std::uint64_t occupied,
                                     std::uint64_t forgotten, std::uint64_t old) {
  std::uint64_t dead = forgotten;
  for (std::uint64_t rest = occupied & ~forgotten; rest != 0; rest &= rest - 1) {
    const auto at = static_cast<std::uint32_t>(std::countr_zero(rest));
    abi::PrefixWord word{lines[at].load(std::memory_order_relaxed)};
    const std::uint32_t kind = kind_of(word);
    if (distance(word) < limits_[kind]) {
      dead |= rest & -rest;
      continue;
    }
    if (needs_forward_[kind] != 0) word = bring_forward(lines[at], word);
    EndpointAges*& ages = kinds_[kind];
    if (ages == nullptr) {
      ages = &ages_.make(word.endpoint(), kind >= abi::kEndpointIdsMax, now_tick_);
    }
    const std::uint32_t age = abi::stamp_age(word.stamp(), now_);
    oldest_age_ = std::max(oldest_age_, age);
    ages->saw(word.stamp(), age);
  }
  if (dead == 0) return;
  running_.dead += count_bits64(dead);
  const std::uint64_t clearing = has_room_ ? dead & (crowded_lines(occupied) | old) : dead;
  if (clearing != 0) clear(lines, clearing);
}

// Relaxed: an empty word publishes nothing. Lost against a stamper: then it lives again, and only
// this pass's counts miss it.
PICKD_INLINE void Sweep::clear(std::atomic<std::uint64_t>* lines, std::uint64_t dead) {
  std::uint64_t cleared = 0;
  const auto load = [lines](std::uint32_t at) {
    return abi::PrefixWord{lines[at].load(std::memory_order_relaxed)};
  };
  const std::uint64_t pairs = clears_pairs_ ? dead & (dead >> 1) & kFirstOfPairs : 0;
  for (std::uint64_t rest = pairs; rest != 0; rest &= rest - 1) {
    const auto at = static_cast<std::uint32_t>(std::countr_zero(rest));
    const abi::PrefixWord first = load(at);
    const abi::PrefixWord second = load(at + 1);
    if (!is_dead(first) || !is_dead(second)) continue;  // one came to life, or went
    PICKD_STEP("sweep: before two dead words are cleared");
    if (!clear_pair(lines + at, first, second)) continue;
    PICKD_STEP("sweep: cleared two");
    cleared += 2;
    dead ^= std::uint64_t{3} << at;
  }
  for (; dead != 0; dead &= dead - 1) {
    const auto at = static_cast<std::uint32_t>(std::countr_zero(dead));
    abi::PrefixWord word = load(at);
    if (!is_dead(word)) continue;
    PICKD_STEP("sweep: before a dead word is cleared");
    if (!lines[at].compare_exchange_strong(word.bits, 0, std::memory_order_relaxed)) continue;
    PICKD_STEP("sweep: cleared");
    ++cleared;
  }
  outcome_.cleared += cleared;
  running_.dead -= std::min(running_.dead, cleared);
}

// Confirmed words, and the markers that may stand for them, have no TTL: they are restamped before
// half a wrap, to a point of a fixed grid that is the same for a parent and its child, so their
// order is kept.
__attribute__((noinline)) abi::PrefixWord Sweep::bring_forward(std::atomic<std::uint64_t>& at,
                                                               abi::PrefixWord word) {
  if (abi::stamp_age(word.stamp(), now_) <= kRestampAgeTicks) return word;
  const std::int64_t grid = (now_tick_ - kRestampAgeTicks) / kRestampGridTicks * kRestampGridTicks;
  const auto stamp = static_cast<std::uint32_t>(grid) & abi::kStampMask;
  if (abi::newer_stamp(stamp, word.stamp(), now_) == word.stamp()) return word;
  const auto next = abi::PrefixWord::make(word.tag(), word.tier(), word.endpoint(), stamp);
  std::uint64_t expected = word.bits;
  if (!at.compare_exchange_strong(expected, next.bits, std::memory_order_relaxed)) return word;
  PICKD_STEP("sweep: brought forward");
  ++outcome_.restamped;
  return next;
}

void Sweep::end_pass() {
  ages_.set_swept_lines(0);  // before the counts move: what comes now belongs to the next pass
  SweepTotals totals;
  totals.words = parts_.lines * abi::kWordsPerLine;
  totals.dead = running_.dead;
  totals.oldest_age_ticks = oldest_age_;
  totals.passes = totals_.passes + 1;
  for (std::uint32_t endpoint = 0; endpoint < parts_.endpoint_ids; ++endpoint) {
    EndpointAges* assumed = kinds_[endpoint];
    EndpointAges* confirmed = kinds_[endpoint + abi::kEndpointIdsMax];
    const std::uint64_t sure = confirmed == nullptr ? 0 : confirmed->end_pass();
    live_[endpoint] = sure + (assumed == nullptr ? 0 : assumed->end_pass());
    if (endpoint == abi::kMarkerEndpoint) {
      totals.markers = live_[endpoint];
      continue;
    }
    totals.confirmed += sure;
    totals.live += live_[endpoint];
    // Relaxed: an estimate for people and scorers.
    PICKD_STEP("sweep: counts of an endpoint");
    parts_.records[endpoint].live_blocks.store(live_[endpoint], std::memory_order_relaxed);
  }
  totals_ = totals;
  running_ = {};
  oldest_age_ = 0;
  horizons_.set_confirmed_words(totals_.confirmed != 0);
}

SweepOutcome follow_leap(Horizons& horizons, Sweep& sweep, std::uint64_t from, std::uint64_t to,
                         std::uint64_t ttl_ticks, std::uint32_t ids_end, std::uint64_t lines) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << abi::kStampBits;
  SweepOutcome outcome;
  // Whole wraps change nothing in how stamps are read; the last two are enough to clear and restamp
  // everything.
  if (to > from && to - from > 2 * kWrap) from += ((to - from) / kWrap - 1) * kWrap;
  for (; to > from && to - from > kSweepPassTicksMax; from += kSweepPassTicksMax) {
    horizons.advance(from + kSweepPassTicksMax, ttl_ticks, ids_end);
    outcome += sweep.slice(from + kSweepPassTicksMax, lines);
  }
  return outcome;
}

}  // namespace pickd::prefix

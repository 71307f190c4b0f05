// Matching: how many leading keys each candidate holds. Reads words, changes nothing.
//
// A set of candidates is a bit set over their positions. A look at key i splits the set that is
// still in question into those that hold i and those that do not; galloping finds a range for each
// part, bisection ends it. A block held by many endpoints (a marker stands in its lines) costs a
// look into the group lines of every candidate, so for hot prefixes the gallop first asks only "is
// there a marker?".
#include <algorithm>
#include <bit>
#include <cassert>

#include "daemon/prefix/line_scan.hpp"
#include "daemon/prefix/prefix_table.hpp"

namespace pickd::prefix {
namespace {

constexpr std::uint32_t kLadderMax = 12;     // 1 + 4 + 16 + ... > kKeysMax
constexpr std::uint32_t kIntervalsMax = 48;  // ladder steps plus one for each halving of kKeysMax

template <std::size_t kWords>
struct CandidateSet {
  std::uint64_t words[kWords];

  static CandidateSet none() { return CandidateSet{{}}; }
  static CandidateSet first(std::size_t count) {
    CandidateSet set{{}};
    for (std::size_t i = 0; i < kWords && count > 64 * i; ++i) {
      const std::size_t here = count - 64 * i;
      set.words[i] = here >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    }
    return set;
  }
  bool has(std::uint32_t at) const { return (words[at / 64] >> (at % 64)) & 1; }
  void add(std::uint32_t at) { words[at / 64] |= std::uint64_t{1} << (at % 64); }
  bool empty() const {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < kWords; ++i) any |= words[i];
    return any == 0;
  }
  CandidateSet without(const CandidateSet& other) const {
    CandidateSet left;
    for (std::size_t i = 0; i < kWords; ++i) left.words[i] = words[i] & ~other.words[i];
    return left;
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < kWords; ++i) {
      for (std::uint64_t rest = words[i]; rest != 0; rest &= rest - 1) {
        visit(
            static_cast<std::uint32_t>(64 * i + static_cast<std::size_t>(std::countr_zero(rest))));
      }
    }
  }
};

PICKD_INLINE bool lives_in(std::uint32_t stamp, LiveRange range) {
  return ((stamp - range.horizon) & abi::kStampMask) <= range.span;
}

PICKD_INLINE LiveRange live_range(abi::LifeWord life, std::uint32_t now) {
  return {life.horizon(), abi::live_span(life.horizon(), now)};
}

template <std::size_t kWords>
class Matcher {
 public:
  using Set = CandidateSet<kWords>;

  Matcher(const TableParts& parts, std::span<const std::uint64_t> keys, std::uint32_t now,
          std::span<const std::uint16_t> ids, std::span<const std::uint64_t> lives,
          std::span<std::uint32_t> match_blocks, MatchScratch& scratch)
      : parts_(parts),
        keys_(keys),
        now_(now),
        ids_(ids),
        lives_(lives),
        blocks_(match_blocks),
        scratch_(scratch) {
    // Acquire: what the maintenance forgot before it raised the horizon stays forgotten for this
    // pick.
    const std::uint64_t global = parts.global_horizon->load(std::memory_order_acquire);
    const auto horizon = static_cast<std::uint32_t>(global) & abi::kStampMask;
    markers_ = {horizon, abi::live_span(horizon, now)};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      scratch.position[ids[i] & (abi::kEndpointIdsMax - 1)] = static_cast<std::uint16_t>(i);
    }
    std::fill(match_blocks.begin(), match_blocks.end(), 0);  // whoever holds nothing stays so
  }

  void gallop() {
    const auto count = static_cast<std::uint32_t>(keys_.size());
    prefetch_ladder(0);
    Set set = Set::first(ids_.size());
    std::uint32_t base = 0;
    if (parts_.hot_holders != 0 && ids_.size() > 1) base = hot_prefix();
    if (base != 0) {
      prefetch_ladder(base);
      const Set held = holders(base - 1, set);
      wait_for(0, base - 1, set.without(held));
      set = held;
    }
    std::uint32_t low = base;
    for (std::uint32_t step = 0; low < count && !set.empty(); ++step) {
      const std::uint32_t at = ladder_position(base, step);
      const Set held = holders(at, set);
      wait_for(low, at, set.without(held));
      set = held;
      low = at + 1;
    }
    settle(set, count);
    while (waiting_ != 0) bisect(intervals_[--waiting_]);
  }

  void look_at_all() {
    constexpr std::uint32_t kAhead = 8;
    const auto count = static_cast<std::uint32_t>(keys_.size());
    Set set = Set::first(ids_.size());
    for (std::uint32_t at = 0; at < std::min(kAhead, count); ++at) prefetch_key(at);
    for (std::uint32_t at = 0; at < count && !set.empty(); ++at) {
      if (at + kAhead < count) prefetch_key(at + kAhead);
      const Set held = holders(at, set);
      settle(set.without(held), at);
      set = held;
    }
    settle(set, count);
  }

 private:
  // Those of `set` hold every key before `low` and not key `high` (or `high` is the end).
  struct Interval {
    std::uint32_t low;
    std::uint32_t high;
    Set set;
  };

  PICKD_INLINE WordRef line(std::uint64_t index) const {
    return parts_.words + index * abi::kWordsPerLine;
  }
  PICKD_INLINE void prefetch_key(std::uint32_t at) const {
    const abi::KeyPlace place = abi::place_of(keys_[at], parts_.lines);
    prefetch_for_read(line(place.line_a));
    prefetch_for_read(line(place.line_b));
  }

  // base, base + 1, base + 5, base + 21, ... and the last key.
  std::uint32_t ladder_position(std::uint32_t base, std::uint32_t step) const {
    const std::uint64_t offset = ((std::uint64_t{1} << (2 * step)) - 1) / 3;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(base + offset, keys_.size() - 1));
  }
  PICKD_INLINE void prefetch_ladder(std::uint32_t base) const {
    for (std::uint32_t step = 0; step < kLadderMax; ++step) {
      const std::uint32_t at = ladder_position(base, step);
      prefetch_key(at);
      if (at + 1 == keys_.size()) break;
    }
  }

  // How many leading keys have a marker.
  std::uint32_t hot_prefix() {
    if (!has_marker(0)) return 0;
    const auto count = static_cast<std::uint32_t>(keys_.size());
    std::uint32_t low = 1;
    std::uint32_t high = count;
    for (std::uint32_t step = 1; low < count; ++step) {
      const std::uint32_t at = ladder_position(0, step);
      if (!has_marker(at)) {
        high = at;
        break;
      }
      low = at + 1;
    }
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      prefetch_key(low + (middle - low) / 2);
      if (middle + 1 < high) prefetch_key(middle + 1 + (high - middle - 1) / 2);
      if (has_marker(middle))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  bool has_marker(std::uint32_t at) const {
    const abi::KeyPlace place = abi::place_of(keys_[at], parts_.lines);
    const WordRef line_a = line(place.line_a);
    const WordRef line_b = line(place.line_b);
    std::uint32_t marker = scan_holders(line_a, line_b, place.tag, abi::kMarkerEndpoint).marker;
    for (; marker != 0; marker &= marker - 1) {
      const abi::PrefixWord word =
          load_word(line_a, line_b, static_cast<std::uint32_t>(std::countr_zero(marker)));
      if (word.tag() == place.tag && word.endpoint() == abi::kMarkerEndpoint &&
          lives_in(word.stamp(), markers_)) {
        return true;
      }
    }
    return false;
  }

  // Adds the holders among `set` of a key whose words these are. True when a live marker is among
  // them.
  PICKD_INLINE bool collect(WordRef line_a, WordRef line_b, std::uint64_t tag, const Set& set,
                            Set& held) {
    std::uint32_t tagged = scan_place(line_a, line_b, tag).tagged;
    bool marked = false;
    for (; tagged != 0; tagged &= tagged - 1) {
      const abi::PrefixWord word =
          load_word(line_a, line_b, static_cast<std::uint32_t>(std::countr_zero(tagged)));
      if (word.tag() != tag) continue;  // it changed since the scan
      const std::uint32_t endpoint = word.endpoint();
      if (endpoint == abi::kMarkerEndpoint) {
        marked |= lives_in(word.stamp(), markers_);
        continue;
      }
      // The position array is never cleared: an entry counts when the candidate there says so too.
      const std::uint32_t at = scratch_.position[endpoint];
      if (at >= ids_.size() || ids_[at] != endpoint || !set.has(at)) continue;
      if (lives_in(word.stamp(), range_of(at, endpoint, word.tier()))) held.add(at);
    }
    return marked;
  }

  PICKD_INLINE LiveRange range_of(std::uint32_t at, std::uint32_t endpoint, abi::Tier tier) const {
    if (tier == abi::Tier::kAssumed) return live_range(abi::LifeWord{lives_[at]}, now_);
    // Acquire: a reset that this pick's life word shows was stored after the confirmed floor.
    return live_range({parts_.records[endpoint].confirmed_life.load(std::memory_order_acquire)},
                      now_);
  }

  Set holders(std::uint32_t at, const Set& set) {
    const std::uint64_t key = keys_[at];
    const abi::KeyPlace place = abi::place_of(key, parts_.lines);
    Set held = Set::none();
    if (collect(line(place.line_a), line(place.line_b), place.tag, set, held)) {
      look_into_groups(key, set, held);
    }
    return held;
  }

  void look_into_groups(std::uint64_t key, const Set& set, Set& held) {
    if (++scratch_.turn == 0) {  // after 2^32 looks old marks could be taken for new ones
      scratch_.group_turn.fill(0);
      scratch_.turn = 1;
    }
    std::uint32_t groups = 0;
    const Set missing = set.without(held);
    missing.for_each([&](std::uint32_t at) {
      const std::uint32_t endpoint = ids_[at];
      std::uint32_t& turn = scratch_.group_turn[endpoint / abi::kEndpointGroupSize];
      if (turn == scratch_.turn) return;
      turn = scratch_.turn;
      const abi::KeyPlace place = abi::place_of(abi::group_key(key, endpoint), parts_.lines);
      prefetch_for_read(line(place.line_a));
      prefetch_for_read(line(place.line_b));
      scratch_.groups[groups++] = {place.line_a, place.line_b, place.tag};
    });
    for (std::uint32_t i = 0; i < groups; ++i) {
      const MatchScratch::Group& group = scratch_.groups[i];
      collect(line(group.line_a), line(group.line_b), group.tag, missing, held);
    }
  }

  void settle(const Set& set, std::uint32_t count) {
    if (count == 0) return;
    set.for_each([&](std::uint32_t at) { blocks_[at] = count; });
  }

  void wait_for(std::uint32_t low, std::uint32_t high, const Set& set) {
    if (set.empty()) return;
    if (low >= high) {
      settle(set, low);
      return;
    }
    assert(waiting_ < kIntervalsMax);
    intervals_[waiting_++] = {low, high, set};
  }

  void bisect(Interval range) {
    while (range.low < range.high) {
      const std::uint32_t middle = range.low + (range.high - range.low) / 2;
      if (range.low < middle) prefetch_key(range.low + (middle - range.low) / 2);
      if (middle + 1 < range.high) prefetch_key(middle + 1 + (range.high - middle - 1) / 2);
      const Set held = holders(middle, range.set);
      const Set lost = range.set.without(held);
      if (held.empty()) {
        range.high = middle;
      } else if (lost.empty()) {
        range.low = middle + 1;
      } else {
        wait_for(middle + 1, range.high, held);
        range.high = middle;
        range.set = lost;
      }
    }
    settle(range.set, range.low);
  }

  const TableParts& parts_;
  std::span<const std::uint64_t> keys_;
  std::uint32_t now_;
  std::span<const std::uint16_t> ids_;
  std::span<const std::uint64_t> lives_;
  std::span<std::uint32_t> blocks_;
  MatchScratch& scratch_;
  LiveRange markers_;
  std::uint32_t waiting_ = 0;
  Interval intervals_[kIntervalsMax];
};

// The set type is chosen by the number of candidates: most picks fit one machine word.
template <typename Run>
void with_matcher(const TableParts& parts, std::span<const std::uint64_t> keys, std::uint32_t now,
                  std::span<const std::uint16_t> ids, std::span<const std::uint64_t> lives,
                  std::span<std::uint32_t> blocks, MatchScratch& scratch, Run&& run) {
  assert(ids.size() < abi::kEndpointIdsMax);
  assert(lives.size() == ids.size() && blocks.size() == ids.size());
  if (keys.empty() || ids.empty()) {
    std::fill(blocks.begin(), blocks.end(), 0);
    return;
  }
  const auto start = [&]<std::size_t kWords>() {
    Matcher<kWords> matcher(parts, keys, now, ids, lives, blocks, scratch);
    run(matcher);
  };
  if (ids.size() <= 64)
    start.template operator()<1>();
  else if (ids.size() <= 128)
    start.template operator()<2>();
  else if (ids.size() <= 512)
    start.template operator()<8>();
  else if (ids.size() <= 1024)
    start.template operator()<16>();
  else
    start.template operator()<64>();
}

}  // namespace

void PrefixTable::match(std::span<const std::uint64_t> keys, std::uint32_t now_stamp,
                        std::span<const std::uint16_t> ids, std::span<const std::uint64_t> lives,
                        std::span<std::uint32_t> match_blocks, MatchScratch& scratch) const {
  with_matcher(parts_, keys, now_stamp, ids, lives, match_blocks, scratch,
               [](auto& matcher) { matcher.gallop(); });
}

void PrefixTable::match_exact(std::span<const std::uint64_t> keys, std::uint32_t now_stamp,
                              std::span<const std::uint16_t> ids,
                              std::span<const std::uint64_t> lives,
                              std::span<std::uint32_t> match_blocks, MatchScratch& scratch) const {
  with_matcher(parts_, keys, now_stamp, ids, lives, match_blocks, scratch,
               [](auto& matcher) { matcher.look_at_all(); });
}

void PrefixTable::prefetch(std::span<const std::uint64_t> keys) const {
  const auto fetch = [this](std::uint64_t key) __attribute__((always_inline)) {
    const abi::KeyPlace place = abi::place_of(key, parts_.lines);
    prefetch_for_read(parts_.words + place.line_a * abi::kWordsPerLine);
    prefetch_for_read(parts_.words + place.line_b * abi::kWordsPerLine);
  };
  for (std::size_t at = 0; at < std::min(kFirstKeys, keys.size()); ++at) fetch(keys[at]);
  for (std::uint64_t at = 21; at < keys.size(); at = 4 * at + 1) fetch(keys[at]);
}

}  // namespace pickd::prefix

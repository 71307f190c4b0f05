// match_prefix(): see prefix_match.hpp.
#include "libclient/prefix_match.hpp"

namespace pickd::client {

namespace {

constexpr std::uint32_t kSetWords = abi::kEndpointIdsMax / 64;
constexpr std::uint32_t kRangesMax = 64;  // one a ladder step and one a halving of kKeysMax

struct Set {
  std::uint64_t words[kSetWords];
};

// Those of `set` hold every key before `low` and not key `high`, or `high` is the end.
struct Range {
  std::uint32_t low;
  std::uint32_t high;
  Set set;
};

class Matcher {
 public:
  Matcher(const StoreView& store, std::uint64_t tick, const std::uint64_t* keys,
          std::uint32_t key_count, MatchColumns& columns)
      : store_(store),
        now_(static_cast<std::uint32_t>(tick) & abi::kStampMask),
        keys_(keys),
        key_count_(key_count),
        columns_(columns),
        used_((columns.count + 63) / 64),
        // Before the clock has run for a TTL nothing can be older than it.
        oldest_(tick < store.ttl_ticks() ? 0 : tick - store.ttl_ticks()),
        marker_horizon_(store.global_horizon()) {
    for (std::uint32_t at = 0; at < columns.count; ++at)
      columns.position[columns.ids[at]] = static_cast<std::uint16_t>(at);
  }

  void run() {
    Set set{};
    for (std::uint32_t at = 0; at < columns_.count; ++at) add(set, at);
    std::uint32_t low = 0;
    for (std::uint32_t stride = 1; low < key_count_ && !empty(set); stride *= 4) {
      const std::uint32_t at = key_count_ - low <= stride ? key_count_ - 1 : low + stride - 1;
      const Set held = holders(at, set);
      split_off(low, at, without(set, held));
      set = held;
      low = at + 1;
    }
    settle(set, key_count_);
    while (waiting_ != 0) {
      const Range range = ranges_[--waiting_];
      if (range.low == range.high) {
        settle(range.set, range.low);
        continue;
      }
      const std::uint32_t middle = range.low + (range.high - range.low) / 2;
      const Set held = holders(middle, range.set);
      split_off(range.low, middle, without(range.set, held));
      split_off(middle + 1, range.high, held);
    }
  }

 private:
  static void add(Set& set, std::uint32_t at) {
    set.words[at / 64] |= std::uint64_t{1} << (at % 64);
  }
  static bool has(const Set& set, std::uint32_t at) {
    return ((set.words[at / 64] >> (at % 64)) & 1) != 0;
  }
  bool empty(const Set& set) const {
    std::uint64_t any = 0;
    for (std::uint32_t i = 0; i < used_; ++i) any |= set.words[i];
    return any == 0;
  }
  Set without(const Set& set, const Set& other) const {
    Set left{};
    for (std::uint32_t i = 0; i < used_; ++i) left.words[i] = set.words[i] & ~other.words[i];
    return left;
  }
  void settle(const Set& set, std::uint32_t blocks) {
    for (std::uint32_t at = 0; at < columns_.count; ++at) {
      if (has(set, at)) columns_.blocks[at] = blocks;
    }
  }
  void split_off(std::uint32_t low, std::uint32_t high, const Set& set) {
    if (empty(set)) return;
    if (waiting_ == kRangesMax) return settle(set, low);  // what is known for sure
    ranges_[waiting_++] = {low, high, set};
  }

  bool lives(abi::PrefixWord word, std::uint32_t at) const {
    if (word.tier() != abi::Tier::kAssumed) {
      // Acquire; partner: begin_generation() stores confirmed_life before life.
      const abi::LifeWord sure{
          store_.endpoint(columns_.ids[at]).confirmed_life.load(std::memory_order_acquire)};
      return abi::stamp_is_live(word.stamp(), sure.horizon(), now_);
    }
    const std::uint32_t horizon = abi::LifeWord{columns_.lives[at]}.horizon();
    const auto oldest = static_cast<std::uint32_t>(oldest_) & abi::kStampMask;
    return abi::stamp_is_live(word.stamp(), abi::newer_stamp(horizon, oldest, now_), now_);
  }

  // Adds those of `set` that hold the block of `place`. True when a live marker stands there.
  bool collect(const abi::KeyPlace& place, const Set& set, Set& held) const {
    bool marked = false;
    for (const std::uint64_t line : {place.line_a, place.line_b}) {
      const abi::Word* words = store_.line(line);
      for (std::uint32_t i = 0; i < abi::kWordsPerLine; ++i) {
        // Relaxed: a word is whole in itself. Partner: the compare-exchange of the daemon's stamp.
        const abi::PrefixWord word{words[i].load(std::memory_order_relaxed)};
        if (word.tag() != place.tag) continue;
        if (word.endpoint() == abi::kMarkerEndpoint) {
          marked |= abi::stamp_is_live(word.stamp(), marker_horizon_, now_);
          continue;
        }
        const std::uint32_t at = columns_.position[word.endpoint()];
        if (at >= columns_.count || columns_.ids[at] != word.endpoint() || !has(set, at)) continue;
        if (lives(word, at)) add(held, at);
      }
    }
    return marked;
  }

  Set holders(std::uint32_t key_at, const Set& set) const {
    const std::uint64_t key = keys_[key_at];
    Set held{};
    if (!collect(abi::place_of(key, store_.lines()), set, held)) return held;
    // A hot block: further holders stand under the keys of their groups.
    std::uint64_t looked[abi::kEndpointIdsMax / abi::kEndpointGroupSize / 64] = {};
    const Set missing = without(set, held);
    for (std::uint32_t at = 0; at < columns_.count; ++at) {
      if (!has(missing, at)) continue;
      const std::uint32_t group = columns_.ids[at] / abi::kEndpointGroupSize;
      if (((looked[group / 64] >> (group % 64)) & 1) != 0) continue;
      looked[group / 64] |= std::uint64_t{1} << (group % 64);
      static_cast<void>(collect(
          abi::place_of(abi::group_key(key, columns_.ids[at]), store_.lines()), missing, held));
    }
    return held;
  }

  const StoreView& store_;
  const std::uint32_t now_;
  const std::uint64_t* keys_;
  const std::uint32_t key_count_;
  MatchColumns& columns_;
  const std::uint32_t used_;
  const std::uint64_t oldest_;
  const std::uint32_t marker_horizon_;
  std::uint32_t waiting_ = 0;
  Range ranges_[kRangesMax];
};

}  // namespace

void match_prefix(const StoreView& store, std::uint64_t tick, const std::uint64_t* keys,
                  std::uint32_t key_count, MatchColumns& columns) {
  if (key_count > store.blocks_max()) key_count = store.blocks_max();
  for (std::uint32_t at = 0; at < columns.count; ++at) columns.blocks[at] = 0;
  if (key_count == 0 || columns.count == 0 || !store.stamps_are_sound()) return;
  Matcher(store, tick, keys, key_count, columns).run();
  for (std::uint32_t at = 0; at < columns.count; ++at) {
    if (columns.blocks[at] < store.blocks_min()) columns.blocks[at] = 0;
  }
}

}  // namespace pickd::client

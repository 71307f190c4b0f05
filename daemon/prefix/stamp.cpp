// Stamping and removing: everything that the request path and the event path write into the table.
#include <algorithm>
#include <bit>

#include "daemon/base/step.hpp"
#include "daemon/prefix/age_run.hpp"
#include "daemon/prefix/line_scan.hpp"
#include "daemon/prefix/prefix_table.hpp"

namespace pickd::prefix {
namespace {

constexpr std::size_t kAhead = 12;  // keys whose lines are on their way
constexpr std::size_t kPlaces = 16;
static_assert(kAhead < kPlaces && std::has_single_bit(kPlaces));

// A compare-exchange fails only when another thread changed the word, so somebody gets on. A key
// that loses this often is given up: a block less, never a worker that hangs.
constexpr std::uint32_t kAttemptsMax = 64;

class Stamper {
 public:
  Stamper(const TableParts& parts, Ages* ages, std::uint32_t endpoint, std::uint32_t stamp,
          abi::Tier tier, std::uint32_t now, std::uint32_t horizon)
      : parts_(parts),
        ages_(ages),
        room_(ages == nullptr ? kRoomMax : ages->room()),
        horizon_(horizon),
        endpoint_(endpoint),
        stamp_(stamp & abi::kStampMask),
        tier_(tier),
        now_(now & abi::kStampMask),
        // Never older than the horizon of a holder that it stands for; a floor that runs ahead of
        // the clock must not carry it out of the sight of readers.
        marker_stamp_(now & abi::kStampMask),
        run_(ages, endpoint, tier != abi::Tier::kAssumed, now_),
        marker_run_(ages, abi::kMarkerEndpoint, false, now_) {}

  StampOutcome run(std::span<const std::uint64_t> keys) {
    abi::KeyPlace places[kPlaces];
    const auto fetch = [&](std::size_t at) {
      const abi::KeyPlace place = abi::place_of(keys[at], parts_.lines);
      prefetch_for_write(line(place.line_a));
      prefetch_for_write(line(place.line_b));
      // Field by field, from registers: a copy of the whole loads wider than its parts were stored,
      // and such a load waits until every store before it, of an answer to another core too, has
      // left this one.
      abi::KeyPlace& kept = places[at % kPlaces];
      kept.line_a = place.line_a;
      kept.line_b = place.line_b;
      kept.tag = place.tag;
    };
    // Where one block was hot and its group was written, the next ones are likely to be so, too:
    // then the group lines are fetched as far ahead. Index of the first key whose group is not on
    // its way.
    std::size_t groups_end = 0;
    const auto fetch_groups = [&](std::size_t from, std::size_t end) {
      for (groups_end = std::max(groups_end, from); groups_end < end; ++groups_end) {
        const abi::KeyPlace place =
            abi::place_of(abi::group_key(keys[groups_end], endpoint_), parts_.lines);
        prefetch_for_write(line(place.line_a));
        prefetch_for_write(line(place.line_b));
      }
    };
    for (std::size_t at = 0; at < std::min(kAhead, keys.size()); ++at) fetch(at);
    for (std::size_t at = 0; at < keys.size(); ++at) {
      if (at + kAhead < keys.size()) fetch(at + kAhead);
      in_group_ = false;
      stamp_key(keys[at], places[at % kPlaces]);
      if (full_) {
        outcome_.left_out = static_cast<std::uint32_t>(keys.size() - at);
        break;
      }
      if (in_group_) fetch_groups(at + 1, std::min(at + 1 + kAhead, keys.size()));
    }
    run_.finish(stamp_);
    marker_run_.finish(marker_stamp_);
    if (ages_ != nullptr && came() != 0) ages_->take_room(came());
    return outcome_;
  }

 private:
  static constexpr std::uint32_t kNone = kWordsPerPlace;
  static constexpr std::int64_t kRoomMax = std::int64_t{1} << 62;

  // Words that this call brought to life.
  PICKD_INLINE std::uint32_t came() const {
    return outcome_.inserted - outcome_.replaced + outcome_.hot_markers + revived_;
  }

  PICKD_INLINE WordRef line(std::uint64_t index) const {
    return parts_.words + index * abi::kWordsPerLine;
  }
  PICKD_INLINE static std::uint64_t line_of(const abi::KeyPlace& place, std::uint32_t at) {
    return at < abi::kWordsPerLine ? place.line_a : place.line_b;
  }
  PICKD_INLINE abi::PrefixWord word_at(const abi::KeyPlace& place, std::uint32_t at) const {
    return load_word(line(place.line_a), line(place.line_b), at);
  }
  PICKD_INLINE HolderScan scan(const abi::KeyPlace& place) const {
    return scan_holders(line(place.line_a), line(place.line_b), place.tag, endpoint_);
  }

  // Relaxed on success: a word is complete in itself. Readers pair with nothing but its bits.
  PICKD_INLINE bool exchange(const abi::KeyPlace& place, std::uint32_t at, abi::PrefixWord from,
                             abi::PrefixWord to) {
    std::atomic<std::uint64_t>& word = line(line_of(place, at))[at % abi::kWordsPerLine];
    return word.compare_exchange_strong(from.bits, to.bits, std::memory_order_relaxed);
  }

  PICKD_INLINE void stamp_key(std::uint64_t key, const abi::KeyPlace& place) {
    for (std::uint32_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
      const HolderScan found = scan(place);
      PICKD_STEP("stamp: a key");
      if (found.tagged == 0 ? insert(place, found.empty) : stamp_held(key, place, found)) return;
      std::atomic_signal_fence(std::memory_order_seq_cst);  // scan anew, not from registers
    }
  }

  // A word of a key and where it stands.
  struct Spot {
    std::uint32_t at = kNone;
    abi::PrefixWord word;
  };

  // The first of the words `among`, which the scan found to be the key's and of `endpoint`; none if
  // there are none. False: it changed since.
  PICKD_INLINE bool spot(const abi::KeyPlace& place, std::uint32_t among, std::uint32_t endpoint,
                         Spot& into) const {
    if (among == 0) return true;
    into.at = static_cast<std::uint32_t>(std::countr_zero(among));
    into.word = word_at(place, into.at);
    return into.word.tag() == place.tag && into.word.endpoint() == endpoint;
  }

  // Some word has the key's tag: this endpoint's, another holder's or the marker. False = look
  // again.
  PICKD_INLINE bool stamp_held(std::uint64_t key, const abi::KeyPlace& place,
                               const HolderScan& found) {
    Spot own;
    Spot marker;
    if (!spot(place, found.own, endpoint_, own) ||
        !spot(place, found.marker, abi::kMarkerEndpoint, marker)) {
      return false;
    }
    const bool marked = marker.at != kNone && lives(marker.word);
    if (own.at != kNone) return (!marked || touch_marker(place, marker)) && touch(place, own);
    if (marked) {
      if (!touch_marker(place, marker)) return false;
    } else {
      const bool hot = parts_.hot_holders != 0 &&
                       count_bits16(found.tagged) >= parts_.hot_holders &&
                       live_holders(place, found.tagged) >= parts_.hot_holders;
      if (!hot) return insert(place, found.empty);
      if (!publish_marker(place, marker, found.empty)) return false;
    }
    PICKD_STEP("stamp: marked, not yet in the group");
    in_group_ = true;
    stamp_in_group(abi::place_of(abi::group_key(key, endpoint_), parts_.lines));
    return true;
  }

  void stamp_in_group(const abi::KeyPlace& place) {
    for (std::uint32_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
      const HolderScan found = scan(place);
      Spot own;
      const bool there = spot(place, found.own, endpoint_, own);
      if (there && (own.at != kNone ? touch(place, own) : insert(place, found.empty))) return;
      std::atomic_signal_fence(std::memory_order_seq_cst);  // as in stamp_key()
    }
  }

  PICKD_INLINE bool touch(const abi::KeyPlace& place, const Spot& own) {
    // Stamped in this very tick already, as the blocks of a prompt that comes often are. It lives:
    // a stamp below the horizon was turned away before the first key.
    if (own.word.bits == word_of(place).bits) {
      ++outcome_.touched;
      return true;
    }
    return touch_older(place, own);
  }

  __attribute__((noinline)) bool touch_older(const abi::KeyPlace& place, const Spot& own) {
    const abi::PrefixWord old = own.word;
    const bool keep_tier =
        tier_ == abi::Tier::kAssumed && old.tier() != abi::Tier::kAssumed && lives(old);
    const abi::Tier tier = keep_tier ? old.tier() : tier_;
    const std::uint32_t stamp = abi::newer_stamp(old.stamp(), stamp_, now_);
    const bool dead = abi::stamp_is_forgotten(old.stamp(), horizon_, now_);
    if (dead && came() >= room_) {
      full_ = true;
      return true;
    }
    const abi::PrefixWord next = abi::PrefixWord::make(old.tag(), tier, endpoint_, stamp);
    if (next.bits != old.bits) {
      PICKD_STEP("touch: before");
      if (!exchange(place, own.at, old, next)) return false;
      PICKD_STEP("touch: after");
      revived_ += dead;
      count_touch(old, tier, stamp, line_of(place, own.at));
    }
    ++outcome_.touched;
    return true;
  }

  // The run adds words of one tier and this call's stamp; a word that stays otherwise is told
  // alone.
  void count_touch(abi::PrefixWord old, abi::Tier tier, std::uint32_t stamp,
                   std::uint64_t at_line) {
    const bool same_class = (tier != abi::Tier::kAssumed) == (tier_ != abi::Tier::kAssumed);
    if (same_class && stamp == stamp_) {
      run_.moved(old, at_line);
    } else {
      AgeRun single = run_.alone(tier != abi::Tier::kAssumed);
      single.moved(old, at_line);
      single.finish(stamp);
    }
  }

  abi::PrefixWord word_of(const abi::KeyPlace& place) const {
    return abi::PrefixWord::make(place.tag, tier_, endpoint_, stamp_);
  }

  abi::PrefixWord marker_word(const abi::KeyPlace& place) const {
    return abi::PrefixWord::make(place.tag, abi::Tier::kAssumed, abi::kMarkerEndpoint,
                                 marker_stamp_);
  }

  bool touch_marker(const abi::KeyPlace& place, const Spot& marker) {
    if (abi::newer_stamp(marker.word.stamp(), marker_stamp_, now_) == marker.word.stamp())
      return true;
    if (!exchange(place, marker.at, marker.word, marker_word(place))) return false;
    PICKD_STEP("touch: a marker");
    marker_run_.moved(marker.word, line_of(place, marker.at));
    return true;
  }

  // Before the first group word: who sees a group word's effect must be able to find it. A dead
  // marker that is there is revived.
  bool publish_marker(const abi::KeyPlace& place, const Spot& dead, std::uint32_t empty) {
    const Choice choice = dead.at != kNone ? Choice{dead, false} : choose(place, empty);
    if (choice.spot.at == kNone) return true;  // sixteen live markers: nothing that could go
    PICKD_STEP("mark: before");
    if (!exchange(place, choice.spot.at, choice.spot.word, marker_word(place))) return false;
    PICKD_STEP("mark: after");
    marker_run_.came(line_of(place, choice.spot.at));
    count_replaced(place, choice);
    ++outcome_.hot_markers;
    return true;
  }

  PICKD_INLINE bool insert(const abi::KeyPlace& place, std::uint32_t empty) {
    if (came() >= room_) {
      full_ = true;
      return true;
    }
    const abi::PrefixWord next = word_of(place);
    if (empty != 0) {
      const std::uint32_t at = emptier(empty);
      if (!exchange(place, at, {}, next)) {
        // Another thread's by now: look again, it may have stamped this very block. Or damaged.
        return word_at(place, at).tag() == 0 && insert_into_full(place, next);
      }
      PICKD_STEP("insert: after");
      run_.came(line_of(place, at));
      ++outcome_.inserted;
      return true;
    }
    return insert_into_full(place, next);
  }

  __attribute__((noinline)) bool insert_into_full(const abi::KeyPlace& place,
                                                  abi::PrefixWord next) {
    const Choice choice = choose(place, 0);
    if (choice.spot.at == kNone) return true;
    PICKD_STEP("replace: before");
    if (!exchange(place, choice.spot.at, choice.spot.word, next)) return false;
    PICKD_STEP("replace: after");
    run_.came(line_of(place, choice.spot.at));
    ++outcome_.inserted;
    count_replaced(place, choice);
    return true;
  }

  // A word of the line that has more of them.
  PICKD_INLINE static std::uint32_t emptier(std::uint32_t free) {
    const std::uint32_t a = free & 0xFF;
    const std::uint32_t b = free >> abi::kWordsPerLine;
    return static_cast<std::uint32_t>(
        std::countr_zero(count_bits8(b) > count_bits8(a) ? b << abi::kWordsPerLine : a));
  }

  struct Choice {
    Spot spot;
    bool replaces = false;
  };

  void count_replaced(const abi::KeyPlace& place, const Choice& choice) {
    if (!choice.replaces) return;
    run_.gone(choice.spot.word, line_of(place, choice.spot.at));
    ++outcome_.replaced;
  }

  // A word to write into: empty, else dead, else the oldest that is not a marker.
  Choice choose(const abi::KeyPlace& place, std::uint32_t empty) const {
    if (empty != 0) {
      const std::uint32_t at = emptier(empty);
      return {{at, word_at(place, at)}, false};
    }
    abi::PrefixWord words[kWordsPerPlace];
    std::uint32_t free = 0;
    std::uint32_t oldest = kNone;
    std::uint32_t oldest_age = 0;
    for (std::uint32_t at = 0; at < kWordsPerPlace; ++at) {
      words[at] = word_at(place, at);
      if (words[at].empty() || !lives(words[at])) {
        free |= 1U << at;
        continue;
      }
      const std::uint32_t age = abi::stamp_age(words[at].stamp(), now_);
      if (words[at].endpoint() == abi::kMarkerEndpoint || (oldest != kNone && age <= oldest_age))
        continue;
      oldest = at;
      oldest_age = age;
    }
    if (free != 0) {
      const std::uint32_t at = emptier(free);
      return {{at, words[at]}, false};
    }
    if (oldest == kNone) return {};
    return {{oldest, words[oldest]}, true};
  }

  // Acquire: pairs with the release of whoever raises a horizon or resets an endpoint. Called after
  // the word was loaded, so a word of a generation that is gone is never taken for one of the
  // present.
  bool lives(abi::PrefixWord word) const {
    const std::uint32_t endpoint = word.endpoint();
    if (endpoint == abi::kMarkerEndpoint) {
      const std::uint64_t global = parts_.global_horizon->load(std::memory_order_acquire);
      return !abi::stamp_is_forgotten(word.stamp(), static_cast<std::uint32_t>(global), now_);
    }
    if (endpoint >= parts_.endpoint_ids) return false;
    const abi::EndpointRecord& record = parts_.records[endpoint];
    const abi::Word& life =
        word.tier() == abi::Tier::kAssumed ? record.life : record.confirmed_life;
    const abi::LifeWord rule{life.load(std::memory_order_acquire)};
    return !abi::stamp_is_forgotten(word.stamp(), rule.horizon(), now_);
  }

  std::uint32_t live_holders(const abi::KeyPlace& place, std::uint32_t tagged) const {
    std::uint32_t live = 0;
    for (std::uint32_t rest = tagged; rest != 0; rest &= rest - 1) {
      const abi::PrefixWord word =
          word_at(place, static_cast<std::uint32_t>(std::countr_zero(rest)));
      live += word.endpoint() != abi::kMarkerEndpoint && lives(word);
    }
    return live;
  }

  const TableParts& parts_;
  Ages* ages_;
  std::int64_t room_;      // words that may come to life
  std::uint32_t horizon_;  // of the endpoint's words of this kind
  std::uint32_t revived_ = 0;
  bool full_ = false;  // no room: the rest of the chain is left out
  std::uint32_t endpoint_;
  std::uint32_t stamp_;
  abi::Tier tier_;
  std::uint32_t now_;
  std::uint32_t marker_stamp_;
  AgeRun run_;
  AgeRun marker_run_;
  StampOutcome outcome_;
  bool in_group_ = false;  // the key before went into its group
};

// Takes the copies of one endpoint out of one key's lines.
std::uint32_t remove_from(const TableParts& parts, const AgeRun& ages, std::uint64_t key,
                          std::uint32_t endpoint) {
  const abi::KeyPlace place = abi::place_of(key, parts.lines);
  std::uint32_t removed = 0;
  for (const std::uint64_t line : {place.line_a, place.line_b}) {
    for (std::uint32_t i = 0; i < abi::kWordsPerLine; ++i) {
      std::atomic<std::uint64_t>& at = parts.words[line * abi::kWordsPerLine + i];
      abi::PrefixWord word{at.load(std::memory_order_relaxed)};
      while (word.tag() == place.tag && word.endpoint() == endpoint) {
        // A failure loads what came instead: a touch of the same block, which has to go as well.
        if (!at.compare_exchange_weak(word.bits, 0, std::memory_order_relaxed)) continue;
        PICKD_STEP("remove: a copy");
        ages.gone(word, line);
        ++removed;
        break;
      }
    }
  }
  return removed;
}

}  // namespace

StampOutcome PrefixTable::stamp(std::span<const std::uint64_t> keys, std::uint32_t endpoint,
                                std::uint32_t stamp, abi::Tier tier, std::uint32_t now_stamp) {
  if (endpoint == abi::kMarkerEndpoint || endpoint >= parts_.endpoint_ids) return {};
  // A late stamp of a generation that is gone, or one older than what was forgotten since: its
  // words would be dead on arrival. They would be so without this look, too; it saves the room and
  // keeps an event of the old generation from confirming a word of the new one. Acquire: partner is
  // the reset.
  const abi::EndpointRecord& record = parts_.records[endpoint];
  const abi::Word& life = tier == abi::Tier::kAssumed ? record.life : record.confirmed_life;
  const abi::LifeWord seen{life.load(std::memory_order_acquire)};
  if (abi::stamp_is_forgotten(stamp, seen.horizon(), now_stamp)) return {};
  Stamper stamper(parts_, ages_, endpoint, stamp, tier, now_stamp, seen.horizon());
  return stamper.run(keys);
}

std::uint32_t PrefixTable::remove(std::uint64_t key, std::uint32_t endpoint,
                                  std::uint32_t now_stamp) {
  if (endpoint == abi::kMarkerEndpoint || endpoint >= parts_.endpoint_ids) return 0;
  const AgeRun ages(ages_, endpoint, false, now_stamp & abi::kStampMask);
  std::uint32_t removed = remove_from(parts_, ages, key, endpoint);
  if (parts_.hot_holders != 0) {
    removed += remove_from(parts_, ages, abi::group_key(key, endpoint), endpoint);
  }
  return removed;
}

}  // namespace pickd::prefix

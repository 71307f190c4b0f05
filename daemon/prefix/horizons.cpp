// Horizons: counting, cutting, raising. See horizons.hpp.
#include "daemon/prefix/horizons.hpp"

#include <algorithm>

#include "daemon/base/step.hpp"

namespace pickd::prefix {
namespace {

// Ages shrink by time alone: an endpoint nobody stamps is counted again this often.
constexpr std::int64_t kRecountTicks = 64;

constexpr std::int64_t kWidestBucketTicks = 1LL << ((kAgeLevels - 1) * kAgeLevelBits);

// The growth that a load cut leaves room for: of all words at most, and how slowly it is unlearned.
constexpr double kGrowthMax = 0.05;
constexpr double kGrowthKept = 0.95;
constexpr double kRoomBound = 0.2;  // of all words: less room than this is counted, not estimated

// A marker outlasts a short TTL: a confirmed word may have come since the sweep last passed.
constexpr std::int64_t kMarkerTicksMin = 4096;

// A floor of long ago would, one wrap later, look like one of the future. Raising it to the horizon
// kills nothing that lives, so it follows once it is this old.
constexpr std::uint32_t kFloorAgeTicks = 1U << 18;

constexpr std::int64_t kLeapTicks = 1 << 14;

// Confirmed words are restamped at half a wrap; behind that their horizon follows, early enough
// that a daemon may be away for a while and not find it a wrap away.
constexpr std::int64_t kConfirmedTicksMax = 3LL << (abi::kStampBits - 2);
constexpr std::int64_t kAwayTicksMax = 3600 * 20;
static_assert(kRestampAgeTicks + kRestampGridTicks + kAwayTicksMax + 2 * kLeapTicks <
              kConfirmedTicksMax);
static_assert(kConfirmedTicksMax + kAwayTicksMax < abi::kStampMask - abi::kAheadTicks);

// What is kept of a capacity: counts inside a bucket that a cut divides are estimates, hence 0.2 %
// less.
double capacity_kept(std::uint64_t capacity) {
  const std::uint64_t kept = capacity - capacity / 500;
  return static_cast<double>(kept);
}

}  // namespace

const char* horizon_rule_name(HorizonRule rule) {
  switch (rule) {
    case HorizonRule::kNone: return "none";
    case HorizonRule::kFloor: return "floor";
    case HorizonRule::kTtl: return "ttl";
    case HorizonRule::kCapacity: return "capacity";
    case HorizonRule::kGlobal: return "load";
    case HorizonRule::kKept: return "before the restart";
  }
  return "none";
}

Horizons::Horizons(const TableParts& parts, Ages& ages)
    : parts_(parts), ages_(ages), endpoints_(parts.endpoint_ids) {}

std::int64_t Horizons::full_tick(std::uint32_t stamp) const {
  const auto now = static_cast<std::uint32_t>(now_) & abi::kStampMask;
  const std::uint32_t ahead = (stamp - now) & abi::kStampMask;
  if (ahead != 0 && ahead <= abi::kAheadTicks) return now_ + ahead;
  return now_ - ((now - stamp) & abi::kStampMask);
}

// From where words are counted. A bucket that a TTL or a cut divides is counted by the share that
// is left; one that a floor divides belongs to the new generation as a whole, for the old one is
// gone.
std::int64_t Horizons::counted_from(abi::LifeWord life) const {
  const std::int64_t horizon = full_tick(life.horizon());
  return life.horizon() == life.floor() ? horizon - horizon % kWidestBucketTicks : horizon;
}

// A clock that leapt (the machine slept) is followed in steps: a horizon that grew too old between
// two calls would be taken for one of the future, and hide what lives. Before the first call there
// was nobody to leap.
void Horizons::advance(std::uint64_t now_tick, std::uint64_t ttl_ticks, std::uint32_t ids_end) {
  const auto now = static_cast<std::int64_t>(now_tick);
  constexpr std::int64_t kWrap = std::int64_t{1} << abi::kStampBits;
  // Whole wraps change nothing in how stamps are read; in the last ones all of them get old.
  if (now_ != 0 && now - now_ > 2 * kWrap) now_ += ((now - now_) / kWrap - 1) * kWrap;
  while (now_ != 0 && now - now_ > kLeapTicks) advance_to(now_ + kLeapTicks, ttl_ticks, ids_end);
  advance_to(now, ttl_ticks, ids_end);
}

void Horizons::advance_to(std::int64_t now_tick, std::uint64_t ttl_ticks, std::uint32_t ids_end) {
  now_ = now_tick;
  ttl_ = static_cast<std::int64_t>(ttl_ticks == 0 || ttl_ticks > kTtlTicksMax ? kTtlTicksMax
                                                                              : ttl_ticks);
  if (ids_end == 0 || ids_end > parts_.endpoint_ids) ids_end = parts_.endpoint_ids;

  const double words = static_cast<double>(parts_.lines * abi::kWordsPerLine);
  const std::int64_t came = ages_.came();
  double total = 0;
  for (std::uint32_t endpoint = 0; endpoint < ids_end; ++endpoint) total += look_at(endpoint);
  // What came between two calls of late will come again before the next one: leave room for it. The
  // sum is a bound; where it is so high that stampers might be told of too little room, count.
  if (total + growth_ > (kLoadMax - kRoomBound) * words) {
    total = 0;  // it is at most so much; see how much it is
    for (std::uint32_t endpoint = 0; endpoint < ids_end; ++endpoint) total += count(endpoint);
  }
  growth_ = std::clamp(total - live_before_, kGrowthKept * growth_, kGrowthMax * words);
  live_total_ = total;
  if (total + growth_ > kLoadMax * words) cut_globally(ids_end);
  live_before_ = live_total_;
  // Markers last: a hot block must not be out of sight before what its holders have behind it, not
  // even for a reader in between or a process that dies here.
  for (std::uint32_t endpoint = 1; endpoint < ids_end; ++endpoint) raise(endpoint);
  raise(abi::kMarkerEndpoint);
  ages_.set_room(came, static_cast<std::int64_t>(kLoadEnd * words - live_total_));
}

// Live words of an endpoint, or an upper bound of them where nothing hangs on it: counting takes a
// microsecond, and there may be thousands of endpoints.
double Horizons::look_at(std::uint32_t endpoint) {
  Endpoint& entry = endpoints_[endpoint];
  bool must_count = !entry.fresh || (now_ + endpoint) % kRecountTicks == 0;
  for (const bool confirmed : {false, true}) {
    EndpointAges* ages = ages_.existing(endpoint, confirmed);
    // A place for what picks will stamp is made with the endpoint's first life word.
    const bool needed =
        ages_.wanted(endpoint, confirmed) ||
        (!confirmed && parts_.records[endpoint].life.load(std::memory_order_relaxed) != 0);
    if (ages == nullptr && needed) ages = &ages_.make(endpoint, confirmed, now_);
    if (ages == nullptr) continue;
    ages->turn(now_);
    entry.live += ages->take_stamped(must_count);
  }
  const std::uint64_t capacity =
      parts_.records[endpoint].capacity_blocks.load(std::memory_order_relaxed);
  if (capacity != 0 && entry.live > capacity_kept(capacity)) must_count = true;
  return must_count ? count(endpoint) : entry.live;
}

double Horizons::count(std::uint32_t endpoint) {
  Endpoint& entry = endpoints_[endpoint];
  const EndpointAges* kinds[] = {ages_.existing(endpoint, false), ages_.existing(endpoint, true)};
  if (kinds[0] == nullptr && kinds[1] == nullptr) return 0;
  const std::uint64_t capacity =
      parts_.records[endpoint].capacity_blocks.load(std::memory_order_relaxed);
  entry.fresh = true;
  AgeCounts assumed{};
  AgeCounts confirmed{};
  if (kinds[0] != nullptr) kinds[0]->add_to(assumed);
  if (kinds[1] != nullptr) kinds[1]->add_to(confirmed);

  if (endpoint == abi::kMarkerEndpoint) {
    const auto global =
        static_cast<std::int64_t>(parts_.global_horizon->load(std::memory_order_relaxed));
    entry.counted_from = global;
    entry.live = count_live(assumed, now_, global);
    return entry.live;
  }
  // Acquire: partner is the reset of the endpoint table; a floor seen here is a floor kept.
  const abi::LifeWord life{parts_.records[endpoint].life.load(std::memory_order_acquire)};
  const abi::LifeWord sure{parts_.records[endpoint].confirmed_life.load(std::memory_order_acquire)};
  const std::int64_t horizon = std::max(counted_from(life), now_ - ttl_);
  const std::int64_t sure_horizon = counted_from(sure);
  entry.live = count_live(assumed, now_, horizon);
  const double sure_live = kinds[1] == nullptr ? 0 : count_live(confirmed, now_, sure_horizon);
  if (capacity != 0 && entry.live + sure_live > capacity_kept(capacity)) {
    // Newest first over both kinds; only assumed words are cut: the engine says what happens to the
    // rest.
    AgeCounts both{};
    add_live(assumed, now_, horizon, both);
    if (kinds[1] != nullptr) add_live(confirmed, now_, sure_horizon, both);
    const AgeCut cut = cut_to_limit(both, now_, horizon, capacity_kept(capacity));
    entry.capacity_cut = std::max(entry.capacity_cut, cut.tick);
    entry.live = count_live(assumed, now_, std::max(horizon, entry.capacity_cut));
  }
  entry.live += sure_live;
  entry.counted_from = std::max(horizon, entry.capacity_cut);
  entry.confirmed_counted_from = sure_horizon;
  return entry.live;
}

// Every endpoint's live words together, oldest first to go, until the load is at kLoadCut.
void Horizons::cut_globally(std::uint32_t ids_end) {
  AgeCounts all{};
  for (std::uint32_t endpoint = 0; endpoint < ids_end; ++endpoint) {
    const Endpoint& entry = endpoints_[endpoint];
    for (const bool confirmed : {false, true}) {
      const EndpointAges* ages = ages_.existing(endpoint, confirmed);
      if (ages == nullptr) continue;
      AgeCounts counts{};
      ages->add_to(counts);
      add_live(counts, now_, confirmed ? entry.confirmed_counted_from : entry.counted_from, all);
    }
  }
  const double words = static_cast<double>(parts_.lines * abi::kWordsPerLine);
  const AgeCut cut = cut_to_limit(all, now_, std::max<std::int64_t>(global_cut_, 0),
                                  std::min(kLoadCut * words, kLoadMax * words - growth_));
  // What advance() added up may be a little old; this is not.
  live_total_ = cut.live;
  recount();
  if (cut.tick <= global_cut_) return;
  global_cut_ = cut.tick;
  ++global_cuts_;
}

void Horizons::recount() {
  for (Endpoint& entry : endpoints_) entry.fresh = false;
}

void Horizons::raise(std::uint32_t endpoint) {
  const auto now = static_cast<std::uint32_t>(now_) & abi::kStampMask;
  const auto stamp = [](std::int64_t tick) {
    return static_cast<std::uint32_t>(tick) & abi::kStampMask;
  };

  if (endpoint == abi::kMarkerEndpoint) {
    // Where there are confirmed words a marker may stand for one that is as old as the sweep lets
    // it get.
    const std::int64_t oldest = confirmed_words_ ? static_cast<std::int64_t>(kTtlTicksMax)
                                                 : std::max(ttl_, kMarkerTicksMin);
    const auto old =
        static_cast<std::int64_t>(parts_.global_horizon->load(std::memory_order_relaxed));
    const std::int64_t next = std::max({old, now_ - oldest, global_cut_});
    PICKD_STEP("horizons: before the global one");
    // Release: partner is the acquire of matchers and stampers.
    if (next > old)
      parts_.global_horizon->store(static_cast<std::uint64_t>(next), std::memory_order_release);
    return;
  }

  Endpoint& entry = endpoints_[endpoint];
  abi::EndpointRecord& record = parts_.records[endpoint];
  for (const bool confirmed : {false, true}) {
    abi::Word& word = confirmed ? record.confirmed_life : record.life;
    const abi::LifeWord old{word.load(std::memory_order_acquire)};
    if (old.bits == 0) continue;  // never used
    std::uint32_t horizon = abi::newer_stamp(old.horizon(), old.floor(), now);
    HorizonRule rule = HorizonRule::kFloor;
    if (horizon == old.horizon() && horizon != old.floor())
      rule = entry.rule == HorizonRule::kNone ? HorizonRule::kKept : entry.rule;
    const auto consider = [&](std::int64_t tick, HorizonRule by) {
      // A cut of long ago says nothing any more, and its stamp would be taken for one of the
      // future.
      if (tick < 0 || tick < now_ - static_cast<std::int64_t>(kTtlTicksMax)) return;
      if (abi::newer_stamp(horizon, stamp(tick), now) == horizon) return;
      horizon = stamp(tick);
      rule = by;
    };
    consider(now_ - (confirmed ? kConfirmedTicksMax : ttl_), HorizonRule::kTtl);
    if (!confirmed) consider(entry.capacity_cut, HorizonRule::kCapacity);
    consider(global_cut_, HorizonRule::kGlobal);
    const bool floor_is_old = abi::stamp_age(old.floor(), now) > kFloorAgeTicks;
    const abi::LifeWord next =
        abi::LifeWord::make(old.generation(), floor_is_old ? horizon : old.floor(), horizon);
    if (!confirmed) entry.rule = rule;
    if (next.bits == old.bits) continue;
    // Loses against a reset on purpose: its floor is newer than anything computed here. Release:
    // partner is the acquire of whoever judges words by this one.
    std::uint64_t expected = old.bits;
    PICKD_STEP("horizons: before one is raised");
    if (!word.compare_exchange_strong(expected, next.bits, std::memory_order_release,
                                      std::memory_order_relaxed)) {
      entry.fresh = false;
    }
    PICKD_STEP("horizons: raised");
  }
}

}  // namespace pickd::prefix

// Ages: adding, turning, cutting. See ages.hpp.
#include "daemon/prefix/ages.hpp"

#include <algorithm>

namespace pickd::prefix {
namespace {

constexpr double kHeavyBucket = 0.045;  // of the limit: dropping less keeps more than 95 %
constexpr double kHeavyMargin = 0.98;

constexpr std::int64_t width_of(std::uint32_t level) {
  return std::int64_t{1} << (level * kAgeLevelBits);
}

// Calls visit(first tick, width, bucket) from the newest bucket to the oldest until it returns
// false. Each level ends where a bucket of the next one begins, so no tick is visited twice.
template <typename Visit>
void walk(std::int64_t now, Visit&& visit) {
  std::int64_t end = now + kAgeAheadTicks;  // stamps may be a little ahead: floors, other threads
  for (std::uint32_t level = 0; level < kAgeLevels; ++level) {
    const std::int64_t width = width_of(level);
    const std::int64_t oldest = ((now / width) - age_reach_buckets(level) + 1) * width;
    std::int64_t begin = oldest;
    if (level + 1 < kAgeLevels) {
      const std::int64_t coarse = width_of(level + 1);
      begin = (oldest + coarse - 1) / coarse * coarse;
    }
    begin = std::max<std::int64_t>(begin, 0);
    for (std::int64_t tick = end - width; tick >= begin; tick -= width) {
      if (!visit(tick, width, age_bucket(level, tick))) return;
    }
    end = begin;
    if (end == 0) return;
  }
}

// Share of a bucket that is at or after `horizon`.
double share_after(std::int64_t tick, std::int64_t width, std::int64_t horizon) {
  if (horizon <= tick) return 1.0;
  return static_cast<double>(tick + width - horizon) / static_cast<double>(width);
}

}  // namespace

void EndpointAges::add(std::uint32_t stamp, std::uint32_t now, std::int32_t delta,
                       std::int32_t passed) {
  for_each_age_bucket(stamp, now, [&](std::uint32_t bucket) {
    counted_[bucket].fetch_add(delta, std::memory_order_relaxed);
    if (passed != 0) moved_[bucket].fetch_add(passed, std::memory_order_relaxed);
  });
  if (delta > 0) stamped_.fetch_add(static_cast<std::uint32_t>(delta), std::memory_order_relaxed);
}

void EndpointAges::turn(std::int64_t now) {
  for (std::uint32_t level = 0; level < kAgeLevels; ++level) {
    const std::int64_t width = width_of(level);
    const std::int64_t first = turned_ < 0 ? 0 : turned_ / width + age_ahead_buckets(level) + 1;
    const std::int64_t last = now / width + age_ahead_buckets(level);
    const std::int64_t from = turned_ < 0 ? last + 1 : std::max(first, last - kAgeBuckets + 1);
    for (std::int64_t bucket = from; bucket <= last; ++bucket) {
      const std::uint32_t index = age_bucket(level, bucket * width);
      counted_[index].store(0, std::memory_order_relaxed);
      moved_[index].store(0, std::memory_order_relaxed);
      // What the pass saw there is counted nowhere else: the next ring takes it over.
      if (seen_[index] != 0 && level + 1 < kAgeLevels) {
        seen_[age_bucket(level + 1, (bucket - kAgeBuckets) * width)] += seen_[index];
      }
      seen_[index] = 0;
    }
  }
  turned_ = now;
}

std::uint64_t EndpointAges::end_pass() {
  std::uint64_t seen = 0;
  for (const std::int32_t count : seen_) seen += static_cast<std::uint32_t>(count);
  // Every ring holds what the finer ones hold, too.
  for (std::uint32_t level = 0; level + 1 < kAgeLevels; ++level) {
    const std::int64_t width = width_of(level);
    const std::int64_t newest = turned_ / width + age_ahead_buckets(level);
    for (std::int64_t bucket = newest; bucket > newest - kAgeBuckets && bucket >= 0; --bucket) {
      seen_[age_bucket(level + 1, bucket * width)] += seen_[age_bucket(level, bucket * width)];
    }
  }
  for (std::size_t bucket = 0; bucket < seen_.size(); ++bucket) {
    const std::int32_t truth =
        seen_[bucket] + moved_[bucket].exchange(0, std::memory_order_relaxed);
    seen_[bucket] = 0;
    // Only this thread sets; stampers add meanwhile, so the difference is added, not the value
    // stored.
    const std::int32_t error = truth - counted_[bucket].load(std::memory_order_relaxed);
    if (error != 0) counted_[bucket].fetch_add(error, std::memory_order_relaxed);
  }
  corrected_ = true;
  return seen;
}

void EndpointAges::add_to(AgeCounts& counts) const {
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    // Below zero: a word was taken out whose coming was not counted; the next pass corrects it.
    counts[bucket] += std::max(counted_[bucket].load(std::memory_order_relaxed), 0);
  }
}

double count_live(const AgeCounts& counts, std::int64_t now, std::int64_t horizon) {
  double live = 0;
  walk(now, [&](std::int64_t tick, std::int64_t width, std::uint32_t bucket) {
    if (tick + width <= horizon) return false;
    live += counts[bucket] * share_after(tick, width, horizon);
    return true;
  });
  return live;
}

AgeCut cut_to_limit(const AgeCounts& counts, std::int64_t now, std::int64_t horizon, double limit) {
  AgeCut cut{horizon, 0};
  walk(now, [&](std::int64_t tick, std::int64_t width, std::uint32_t bucket) {
    if (tick + width <= horizon) return false;
    const double share = share_after(tick, width, horizon);
    const double count = counts[bucket] * share;
    if (cut.live + count <= limit || count == 0) {
      cut.live += count;
      return true;
    }
    if (cut.live == 0) {  // the newest: it stays whole
      cut.live = count;
      cut.tick = std::max(tick, horizon);
      return false;
    }
    cut.tick = tick + width;
    // A bucket that is a large part of the limit is cut inside, as if its words were spread evenly:
    // dropping it whole would leave the endpoint well below its capacity. They are not spread quite
    // evenly, hence the margin.
    if (count > kHeavyBucket * limit && width > 1) {
      const double keep = std::max(kHeavyMargin * limit - cut.live, 0.0) / counts[bucket];
      const auto kept_ticks = static_cast<std::int64_t>(static_cast<double>(width) * keep);
      cut.tick -= kept_ticks;
      cut.live += counts[bucket] * static_cast<double>(kept_ticks) / static_cast<double>(width);
    }
    return false;
  });
  return cut;
}

void add_live(const AgeCounts& counts, std::int64_t now, std::int64_t horizon, AgeCounts& sum) {
  walk(now, [&](std::int64_t tick, std::int64_t width, std::uint32_t bucket) {
    if (tick + width <= horizon) return false;
    sum[bucket] += static_cast<std::int32_t>(counts[bucket] * share_after(tick, width, horizon));
    return true;
  });
}

Ages::Ages(std::uint32_t endpoint_ids)
    : endpoint_ids_(endpoint_ids), slots_(2 * std::size_t{endpoint_ids}) {}

EndpointAges& Ages::make(std::uint32_t endpoint, bool confirmed, std::int64_t now) {
  Slot& slot = slots_[index(endpoint, confirmed)];
  if (EndpointAges* ages = slot.ages.load(std::memory_order_relaxed)) return *ages;
  owned_.push_back(std::make_unique<EndpointAges>());
  EndpointAges* ages = owned_.back().get();
  ages->turn(now);
  slot.wanted.store(true, std::memory_order_relaxed);
  slot.ages.store(ages, std::memory_order_release);  // partner: find()
  return *ages;
}

}  // namespace pickd::prefix

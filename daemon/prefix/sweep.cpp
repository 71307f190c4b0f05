// Sweep: one line after the other. See sweep.hpp.
#include "daemon/prefix/sweep.hpp"

#include <algorithm>

#include "daemon/prefix/line_scan.hpp"

namespace pickd::prefix {
namespace {

constexpr std::uint64_t kPassTicks = 400;      // 20 s
constexpr std::uint64_t kPassTicksFull = 100;  // 5 s, when words are scarce
constexpr double kScarceLoad = 0.65;

}  // namespace

Sweep::Sweep(const TableParts& parts, Ages& ages, Horizons& horizons)
    : parts_(parts), ages_(ages), horizons_(horizons), horizons_now_(2 * std::size_t{abi::kEndpointIdsMax}),
      kinds_(2 * std::size_t{abi::kEndpointIdsMax}, nullptr), live_(abi::kEndpointIdsMax),
      counting_(abi::kEndpointIdsMax) {}

std::uint64_t Sweep::lines_per_tick() const {
  if (totals_.passes == 0) return parts_.lines;
  const std::uint64_t ticks = horizons_.load() > kScarceLoad ? kPassTicksFull : kPassTicks;
  return parts_.lines / ticks + 1;
}

SweepOutcome Sweep::slice(std::uint64_t now_tick, std::uint64_t lines) {
  const auto now = static_cast<std::uint32_t>(now_tick) & abi::kStampMask;
  read_horizons();
  SweepOutcome outcome;
  for (std::uint64_t left = std::min(lines, parts_.lines); left != 0; --left) {
    sweep_line(parts_.words + next_line_ * abi::kWordsPerLine, now, static_cast<std::int64_t>(now_tick),
               outcome);
    ++next_line_;
    if (next_line_ % 64 == 0) ages_.set_swept_lines(next_line_);
    if (next_line_ == parts_.lines) {
      next_line_ = 0;
      ++outcome.passes;
      end_pass();
    }
  }
  ages_.set_swept_lines(next_line_);
  outcome.looked = std::min(lines, parts_.lines) * abi::kWordsPerLine;
  return outcome;
}

// The horizons of this slice. One that rises meanwhile only leaves a dead word to the next pass.
void Sweep::read_horizons() {
  for (std::uint32_t endpoint = 1; endpoint < parts_.endpoint_ids; ++endpoint) {
    const abi::EndpointRecord& record = parts_.records[endpoint];
    // Acquire: partners are Horizons (this thread) and the reset of the endpoint table.
    horizons_now_[endpoint] = abi::LifeWord{record.life.load(std::memory_order_acquire)}.horizon();
    horizons_now_[endpoint + abi::kEndpointIdsMax] =
        abi::LifeWord{record.confirmed_life.load(std::memory_order_acquire)}.horizon();
    kinds_[endpoint] = ages_.existing(endpoint, false);
    kinds_[endpoint + abi::kEndpointIdsMax] = ages_.existing(endpoint, true);
  }
  kinds_[abi::kMarkerEndpoint] = ages_.existing(abi::kMarkerEndpoint, false);
  const std::uint64_t global = parts_.global_horizon->load(std::memory_order_acquire);
  horizons_now_[0] = static_cast<std::uint32_t>(global) & abi::kStampMask;
  horizons_now_[abi::kEndpointIdsMax] = horizons_now_[0];
}

void Sweep::sweep_line(std::atomic<std::uint64_t>* line, std::uint32_t now, std::int64_t now_tick,
                       SweepOutcome& outcome) {
  for (std::uint32_t i = 0; i < abi::kWordsPerLine; ++i) {
    const std::uint64_t bits = line[i].load(std::memory_order_relaxed);
    if (bits == 0) continue;
    abi::PrefixWord word{bits};
    const std::uint32_t endpoint = word.endpoint();
    const std::uint32_t kind =
        endpoint + (word.tier() == abi::Tier::kAssumed ? 0 : abi::kEndpointIdsMax);
    const bool live = endpoint < parts_.endpoint_ids &&
                      !abi::stamp_is_forgotten(word.stamp(), horizons_now_[kind], now);
    if (!live) {
      std::uint64_t expected = bits;
      // Relaxed: an empty word publishes nothing. Lost against a stamper: then it lives again.
      if (line[i].compare_exchange_strong(expected, 0, std::memory_order_relaxed)) {
        ++outcome.cleared;
        ++running_.dead;
        continue;
      }
      word.bits = expected;
      if (word.empty() || word.endpoint() != endpoint) continue;
    }
    const bool keeps = kind >= abi::kEndpointIdsMax ||
                       (endpoint == abi::kMarkerEndpoint && horizons_.confirmed_words());
    if (keeps && abi::stamp_age(word.stamp(), now) > kRestampAgeTicks) {
      // To a point of a fixed grid, the same for a parent and its child: their order is kept.
      const std::int64_t grid = (now_tick - kRestampAgeTicks) / kRestampGridTicks * kRestampGridTicks;
      const auto stamp = static_cast<std::uint32_t>(grid) & abi::kStampMask;
      const auto next = abi::PrefixWord::make(word.tag(), word.tier(), endpoint, stamp);
      std::uint64_t expected = word.bits;
      if (abi::newer_stamp(stamp, word.stamp(), now) != word.stamp() &&
          line[i].compare_exchange_strong(expected, next.bits, std::memory_order_relaxed)) {
        ++outcome.restamped;
        word = next;
      }
    }
    count(word, now, now_tick);
  }
}

PICKD_INLINE void Sweep::count(abi::PrefixWord word, std::uint32_t now, std::int64_t now_tick) {
  const std::uint32_t endpoint = word.endpoint();
  const bool confirmed = endpoint != abi::kMarkerEndpoint && word.tier() != abi::Tier::kAssumed;
  EndpointAges*& ages = kinds_[endpoint + (confirmed ? abi::kEndpointIdsMax : 0)];
  if (ages == nullptr) ages = &ages_.make(endpoint, confirmed, now_tick);
  ages->saw(word.stamp(), now);
  ++counting_[endpoint];
  running_.confirmed += confirmed;
  running_.oldest_age_ticks = std::max(running_.oldest_age_ticks, abi::stamp_age(word.stamp(), now));
}

void Sweep::end_pass() {
  ages_.set_swept_lines(0);  // before the counts move: what comes now belongs to the next pass
  for (EndpointAges* ages : kinds_) {
    if (ages != nullptr) ages->end_pass();
  }
  std::uint64_t live = 0;
  for (std::uint32_t endpoint = 0; endpoint < parts_.endpoint_ids; ++endpoint) {
    live_[endpoint] = counting_[endpoint];
    counting_[endpoint] = 0;
    if (endpoint == abi::kMarkerEndpoint) continue;
    live += live_[endpoint];
    // Relaxed: an estimate for people and scorers.
    parts_.records[endpoint].live_blocks.store(live_[endpoint], std::memory_order_relaxed);
  }
  running_.live = live;
  running_.markers = live_[abi::kMarkerEndpoint];
  running_.words = parts_.lines * abi::kWordsPerLine;
  running_.passes = totals_.passes + 1;
  totals_ = running_;
  running_ = {};
  horizons_.set_confirmed_words(totals_.confirmed != 0);
}

}  // namespace pickd::prefix

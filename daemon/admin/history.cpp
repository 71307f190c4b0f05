#include "daemon/admin/history.hpp"

#include <algorithm>

namespace pickd::admin {

namespace {

using abi::Counter;

std::optional<double> share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::optional<double> percentile_between(const base::HistogramCounts& before,
                                         const base::HistogramCounts& now, double share) {
  if (now.shape == nullptr) return std::nullopt;
  std::vector<std::uint64_t> counts = now.buckets;
  if (before.shape != nullptr) {
    for (std::size_t at = 0; at < counts.size(); ++at)
      counts[at] -= std::min(counts[at], before.buckets[at]);
  }
  double all = 0;
  for (const std::uint64_t count : counts) all += static_cast<double>(count);
  if (all == 0) return std::nullopt;
  const auto bounds = now.shape->bounds;
  double below = 0;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    const auto count = static_cast<double>(counts[at]);
    if (count != 0 && below + count >= share * all) {
      if (at == bounds.size()) break;  // beyond the last bound: nothing closer is known
      const double low = at == 0 ? 0 : static_cast<double>(bounds[at - 1]);
      const double high = static_cast<double>(bounds[at]);
      return (low + (high - low) * (share * all - below) / count) * now.shape->unit;
    }
    below += count;
  }
  return static_cast<double>(bounds.back()) * now.shape->unit;
}

std::optional<double> ttft_error(const Facts& facts) {
  double sum = 0;
  double samples = 0;
  for (const ClassFacts& of : facts.classes) {
    const auto weight = static_cast<double>(of.ttft.samples);
    sum += weight * of.ttft.error;
    samples += weight;
  }
  return samples == 0 ? std::nullopt : std::optional<double>(sum / samples);
}

void History::add(const Facts& facts) {
  if (before_) {
    const double seconds = std::max(1e-3, facts.uptime_s - before_->uptime_s);
    const auto more = [&](Counter which) {
      return facts.counter(which) - before_->counters[static_cast<std::size_t>(which)];
    };
    Point point;
    point.number = next_++;
    point.unix_ms = facts.unix_ms;
    point.picks_per_s = static_cast<double>(more(Counter::picks)) / seconds;
    point.refused_per_s = static_cast<double>(more(Counter::picks_refused)) / seconds;
    point.match_share = share(more(Counter::match_blocks), more(Counter::prompt_blocks));
    point.reported_share =
        share(more(Counter::reported_cached_tokens), more(Counter::reported_prompt_tokens));
    point.pick_p50_s = percentile_between(before_->pick_seconds, facts.pick_seconds, .5);
    point.pick_p99_s = percentile_between(before_->pick_seconds, facts.pick_seconds, .99);
    point.ttft_p50_s = percentile_between(before_->ttft, facts.ttft, .5);
    point.ttft_error = ttft_error(facts);
    point.inflight = facts.reservations;
    points_.push_back(point);
    if (points_.size() > kPointsMax) points_.pop_front();
  }
  before_ = Before{facts.uptime_s, facts.counters, facts.pick_seconds, facts.ttft};
}

}  // namespace pickd::admin

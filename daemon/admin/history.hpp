// History: what the last minutes were like, a point a second, for the page's charts: counts of the
// facts as rates, histograms of one second as percentiles.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/admin/facts.hpp"

namespace pickd::admin {

// The value below which `share` of the values lie that came between two readings, in the unit that
// is shown, straight between the bounds of its bucket; nothing when none came.
std::optional<double> percentile_between(const base::HistogramCounts& before,
                                         const base::HistogramCounts& now, double share);

class History {
 public:
  static constexpr std::size_t kPointsMax = 600;

  struct Point {
    std::uint64_t number = 0;  // counts on without end
    std::int64_t unix_ms = 0;
    double picks_per_s = 0;
    double refused_per_s = 0;
    std::optional<double> match_share;     // of the blocks of the picks of this second
    std::optional<double> reported_share;  // cached of the prompt tokens, as engines reported
    std::optional<double> pick_p50_s;
    std::optional<double> pick_p99_s;
    std::optional<double> ttft_p50_s;
    std::optional<double> ttft_error;  // of all classes, lately
    std::uint64_t inflight = 0;
  };

  // About once a second.
  void add(const Facts& facts);
  const std::deque<Point>& points() const { return points_; }

 private:
  struct Before {
    double uptime_s = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(abi::Counter::kCount)> counters = {};
    base::HistogramCounts pick_seconds;
    base::HistogramCounts ttft;
  };

  std::optional<Before> before_;
  std::deque<Point> points_;
  std::uint64_t next_ = 1;
};

// Mean over classes of the error of TTFT, by their samples; nothing without samples.
std::optional<double> ttft_error(const Facts& facts);

}  // namespace pickd::admin

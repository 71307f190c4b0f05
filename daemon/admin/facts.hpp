// Facts: what the daemon is like at one moment, as metrics and the page show it. Plain data;
// control/ fills it in.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "abi/counters.hpp"
#include "daemon/base/histogram.hpp"
#include "daemon/pick/explanation.hpp"

namespace pickd::admin {

struct EndpointFacts {
  std::string name;
  std::string address;
  std::string pool;
  std::string role;
  std::string state;  // ready, suspect, down, draining, starting
  std::string why_not_ready;
  std::string engine;
  std::vector<std::string> models;
  std::optional<std::uint64_t> waiting;  // as the engine told
  std::optional<std::uint64_t> running;
  std::optional<double> kv_use;       // 0..1
  std::optional<double> load_age_s;   // since it told
  std::uint32_t scrape_failures = 0;  // in a row
  std::uint64_t inflight_requests = 0;
  std::uint64_t inflight_tokens = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t capacity_blocks = 0;  // 0: none known
  // Since it joined.
  std::uint64_t picks = 0;
  std::uint64_t prompt_blocks = 0;
  std::uint64_t match_blocks = 0;
};

struct ModelFacts {
  std::uint64_t samples = 0;
  double error = 0;  // mean of |predicted - measured| / measured, lately
  double bias = 0;
  double coverage = 0;
  bool ready = false;
  bool drifting = false;
};

struct ClassFacts {
  std::string name;
  double output_tokens = 0;
  ModelFacts ttft;
  ModelFacts itl;
};

struct Facts {
  std::string version;
  std::uint32_t pid = 0;
  double uptime_s = 0;
  std::int64_t unix_ms = 0;  // when these were collected
  std::string started;       // warm, or empty and why
  std::string profile;
  std::string reactor;
  std::uint64_t state_bytes = 0;
  std::uint32_t block_tokens = 0;
  double ttl_s = 0;
  std::uint64_t clients = 0;
  std::uint64_t channels = 0;
  std::uint64_t workers = 0;
  std::uint64_t reservations = 0;
  std::uint64_t reservations_max = 0;
  std::uint64_t prefix_words = 0;
  std::uint64_t prefix_live = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(abi::Counter::kCount)> counters = {};
  std::vector<EndpointFacts> endpoints;
  std::vector<ClassFacts> classes;
  std::vector<std::pair<std::string, std::uint64_t>> picks_by_reason;
  base::HistogramCounts pick_seconds;
  base::HistogramCounts match_share;
  base::HistogramCounts ttft;
  base::HistogramCounts predicted_ttft;
  base::HistogramCounts ttft_ratio;
  base::HistogramCounts itl;
  base::HistogramCounts predicted_itl;
  base::HistogramCounts itl_ratio;

  std::uint64_t counter(abi::Counter which) const {
    return counters[static_cast<std::size_t>(which)];
  }
};

// One thing that must be so for a "yes".
struct Check {
  std::string name;
  bool good = false;
  std::string why;  // what is wrong, or what is so
};

// Where the facts come from. Reactor thread only.
class Source {
 public:
  virtual ~Source() = default;
  virtual Facts facts() = 0;
  // Whether the daemon works: no restart would help it.
  virtual std::vector<Check> health() = 0;
  // Whether picks can be answered well now.
  virtual std::vector<Check> readiness() = 0;
  // The newest picks that were written down, newest first, and how old they are.
  struct RecentPick {
    double age_s = 0;
    std::unique_ptr<const pick::Explanation> explanation;
  };
  virtual std::vector<RecentPick> recent_picks(std::size_t count) = 0;
};

}  // namespace pickd::admin

// Replays a workload against one structure and takes its figures.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tools/bench/store.hpp"
#include "tools/bench/store_subject.hpp"
#include "tools/bench/store_workload.hpp"

namespace pickd::bench {

// NaN or 0: not measured.
struct StoreFigures {
  double find_p50_ns = 0;
  double find_p99_ns = 0;
  double find_mean_ns = 0;
  double insert_mblocks_s = 0;
  double combined_mops_s = 0;
  double steady_find_p50_ns = 0;
  double steady_find_p99_ns = 0;
  double steady_insert_mblocks_s = 0;
  double steady_combined_mops_s = 0;
  double steady_load = 0;
  double evict_mentries_s = 0;  // when everything expires at once
  double bytes_per_holding = 0;
  double load = 0;
  double replaced = 0;
  double shared_found = 0;  // share of endpoints for which the whole common prompt is found
};

// Find alone, on a filled table: what the sweep costs, and how it grows with the prompt.
struct FindFigures {
  double quiet_p50_ns = 0;
  double quiet_p99_ns = 0;
  double sweeping_p50_ns = 0;
  double sweeping_p99_ns = 0;
  std::vector<std::pair<std::uint32_t, double>> by_tokens;  // prompt length, mean ns
};

using MakeSubject = std::function<std::unique_ptr<StoreSubject>(bool with_ttl)>;

// `finds`: measured too when not null.
StoreFigures measure_subject(const MakeSubject& make, const StoreWorkload& workload,
                             const StoreOptions& options, FindFigures* finds);

// A dependent read of a random 64-byte line of `bytes` of memory.
double measure_line_read_ns(std::uint64_t bytes);

}  // namespace pickd::bench

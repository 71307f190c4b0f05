// What one scrape of an engine told, as numbers: the output of whoever reads a metrics page, the
// input of told_load.hpp. Knows neither pages nor records.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

// Load of one model of an engine that serves several.
struct ModelLoad {
  std::string model;
  std::uint32_t waiting = abi::kUnknown32;
  std::uint32_t running = abi::kUnknown32;
};

// One page of an engine whose ranks have a page each.
struct PageProgress {
  double process_start_s = std::numeric_limits<double>::quiet_NaN();
  double progress = std::numeric_limits<double>::quiet_NaN();
  std::uint32_t progress_series = 0;
};

struct EngineFacts {
  // Summed over the ranks that the page tells of, or of the one that was asked for. kUnknown32
  // where the page has no such metric or no sound value of it.
  std::uint32_t waiting = abi::kUnknown32;
  std::uint32_t running = abi::kUnknown32;
  // Mean over the ranks and the largest of them, parts per million; at most 1,000,000.
  std::uint32_t kv_use_ppm = abi::kUnknown32;
  std::uint32_t kv_use_max_ppm = abi::kUnknown32;
  std::uint32_t ranks = 0;  // behind this page; 0: no load metric was found

  // KV cache as the engine says it: tokens of a block (of the scheduler, not always of the cache)
  // and blocks of all ranks together. kUnknown32 and 0 where not told.
  std::uint32_t block_tokens = abi::kUnknown32;
  std::uint64_t blocks = 0;

  // Without `tells_adapters` the engine has no metric of adapters: no signal, not "none".
  bool tells_adapters = false;
  std::uint32_t adapters_max = 0;
  std::vector<std::string> adapters_active;
  std::vector<std::string> adapters_waiting;

  std::vector<ModelLoad> models;  // when the page tells of more than one, else empty

  // For noticing a restart. NaN where not told.
  double process_start_s = std::numeric_limits<double>::quiet_NaN();  // Unix time
  double progress = std::numeric_limits<double>::quiet_NaN();  // sum of counters that never go back
  std::uint32_t progress_series = 0;                           // how many were summed
  // The same of each page where the facts are of several (join_facts.hpp), in their order: one rank
  // that begins anew does not set the sum back when the others went on. Empty: of one page.
  std::vector<PageProgress> pages;
};

}  // namespace pickd::endpoints

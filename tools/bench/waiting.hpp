// pickd-bench pick --rate and --standard: ways of waiting side by side, with other load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pickd::bench {

struct WaitingOptions {
  double rate = 0;  // picks a second of all clients together; 0: no open loop
  bool standard = false;
  std::uint32_t clients = 1;
  std::uint32_t hogs = 0;
  std::uint32_t endpoints = 16;
  std::uint32_t prompt_tokens = 1000;
  std::uint32_t slices = 6;  // of every way of waiting, in turn
  double slice_s = 1;
  std::vector<std::string> waits = {"block", "default", "spin"};
  bool json = false;
};

// One rate and one number of hogs, with latencies of all slices together. Throws
// std::runtime_error.
void run_waiting(const WaitingOptions& options);

// The table of docs/performance.md: two rates, with 0, 1, 2 and 4 hogs, every way of waiting and a
// bare wake, all in turns; of each the medians of the slices.
void run_waiting_standard(const WaitingOptions& options);

}  // namespace pickd::bench

// pickd-bench pick --rate: picks at intended times, with other load on the machine, under several
// ways of waiting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pickd::bench {

struct OpenLoopOptions {
  double rate = 0;  // picks a second of all clients together; 0: no open loop
  std::uint32_t clients = 1;
  std::uint32_t hogs = 0;
  std::uint32_t endpoints = 16;
  std::uint32_t prompt_tokens = 1000;
  std::uint32_t slices = 6;  // of every strategy, in turn
  double slice_s = 1;
  std::vector<std::string> waits = {"block", "adaptive", "spin"};
  bool json = false;
};

// Throws std::runtime_error.
void run_open_loop(const OpenLoopOptions& options);

}  // namespace pickd::bench

// What `pickd-bench pick` measured, and how it is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/common/samples.hpp"

namespace pickd::bench {

struct HashCost {
  std::uint32_t tokens;
  tools::Samples ns;
};

struct PickFigures {
  std::uint32_t endpoints = 0;
  std::uint32_t prompt_tokens = 0;
  std::size_t record_bytes = 0;
  std::size_t answer_bytes = 0;
  tools::Samples pick_ns;
  tools::Samples hash_ns;
  tools::Samples ring_ns;
  tools::Samples eventfd_ns;
  tools::Samples unix_ns;
  tools::Samples grpc_ns;    // empty: built without gRPC
  tools::Samples daemon_ns;  // a worker's round until the answer is out, in this process
  // Of the live run: what the library does itself without the hashing; what lies between its
  // submission and its copy of the answer. And a look at the clock.
  tools::Samples library_ns;
  tools::Samples wait_ns;
  tools::Samples clock_ns;
  std::vector<HashCost> hash_costs;

  std::uint32_t outstanding = 0;
  std::uint32_t pipelined_tokens = 0;
  std::uint32_t pipelined_prompts = 0;
  tools::Samples picks_s;        // one a slice
  tools::Samples worker_ns;      // all a worker does for one of these picks, in this process
  double worker_core_share = 0;  // how much of the time the worker had a core
  double client_core_share = 0;
};

void print_table(const PickFigures& figures);
void print_json(const PickFigures& figures);

}  // namespace pickd::bench

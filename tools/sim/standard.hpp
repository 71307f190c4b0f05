// The standard comparison: every policy on the cells that policies are judged by.
#pragma once

#include <string>
#include <vector>

#include "tools/sim/figures.hpp"

namespace pickd::sim {

struct Cell {
  std::string name;
  std::string trace;  // a file of the trace folder (*.jsonl) or a generator
  double speed = 1;
  double seconds = 0;
  std::uint32_t endpoints = 8;
  std::uint64_t capacity_blocks = 5000;
  double slow_share = 0;
};
const std::vector<Cell>& standard_cells();
std::vector<std::string> standard_policies();

struct StandardOptions {
  std::string trace_folder;  // of the Mooncake traces; their cells are left out where it has none
  std::vector<std::string> policies;
  std::uint32_t seeds = 3;
  std::uint64_t first_seed = 1;
  unsigned threads = 2;
};

// Prints the tables of docs/policies.md (Markdown), the first policy against the others, and the
// progress on stderr. Throws std::runtime_error for a policy that is not there.
void print_standard(const StandardOptions& options);

}  // namespace pickd::sim

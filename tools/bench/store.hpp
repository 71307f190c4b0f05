// pickd-bench store: the prefix table at work on a trace, beside three reference structures and the
// machine's own random line read, all in one run.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace pickd::bench {

struct StoreOptions {
  std::string trace;          // empty: a workload is made here
  std::uint32_t expand = 32;  // chained blocks for each 512-token id: 32 = blocks of 16 tokens
  std::uint32_t endpoints = 8;
  std::uint32_t state_mib = 128;    // of the prefix table
  std::uint32_t shared_blocks = 0;  // of one common prompt in front of every request
  std::uint32_t ttl_ticks = 0;      // a tick is one request; 0 = no steady state is measured
  std::uint32_t loops = 3;          // times the trace is replayed for the steady state
  std::uint32_t threads = 1;
  std::uint32_t requests_max = 0;  // 0 = the whole trace
  bool references = true;
  bool json = false;
};

// Measures and prints. Throws std::runtime_error when the trace cannot be read or memory is
// missing.
void measure_store(const StoreOptions& options);

// Adds the options to a subcommand and sets its callback.
void add_store(CLI::App& app);

// The same as a program: 0 measured, 1 could not measure, 2 arguments bad.
int run_store(int argc, char** argv);

}  // namespace pickd::bench

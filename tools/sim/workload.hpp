// Workloads: requests with arrival times, lengths and blocks. From a Mooncake trace, an Azure CSV
// or a generator by name; the same seed makes the same requests.
//
// A block is 512 tokens; equal ids are equal blocks with equal history. The answer's length is for
// the engine alone: no policy sees it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/enginesim/engine.hpp"

namespace pickd::sim {

inline constexpr std::uint32_t kBlockTokens = 512;

struct SimRequest {
  double arrival_s = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;
  std::vector<std::uint64_t> blocks;
  double slo_ttft_s = 0;  // 0: none
  double slo_itl_s = 0;
};

struct Workload {
  std::string name;
  std::vector<SimRequest> requests;
  double bound_hit_rate = 0;  // token hits of one infinite cache shared by all
};

struct GeneratorInfo {
  std::string_view name;
  std::string_view summary;
  Workload (*make)(std::uint64_t seed, double seconds, double rate_per_s);
  double rate_per_endpoint_s;  // by default
};
std::span<const GeneratorInfo> generators();

struct WorkloadOptions {
  std::string name;       // of a generator, or the path of a trace
  double speed = 1;       // arrivals come this much quicker
  double seconds = 0;     // at most that much of it, before the speed; 0: a trace whole, 600 s
  double rate_per_s = 0;  // of a generator; 0: its own for so many endpoints
  std::uint32_t endpoints = 8;
  std::uint64_t seed = 1;
};

// Throws std::runtime_error that says what would be right.
Workload make_workload(const WorkloadOptions& options);

// Token hits of one shared cache of `capacity_blocks` (0: infinite) with least-recently-used
// eviction: no fleet of engines can do better.
double bound_hit_rate(const std::vector<SimRequest>& requests, std::uint64_t capacity_blocks);

// Mean TTFT if every request were alone on an engine whose cache holds all that was asked before:
// no policy can do better.
double bound_ttft_mean_s(const std::vector<SimRequest>& requests, const enginesim::StepRates& rates,
                         std::uint32_t batched_tokens_max);

}  // namespace pickd::sim

// Simulation: a workload against a fleet of engines behind gateways, in virtual time.
//
// The engines are those of enginesim: continuous batching, chunked prefill, a paged cache whose
// blocks can be shared as soon as they are scheduled, preemption of the newest. Scrapes come on a
// period of their own. Same options, same result.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/enginesim/engine.hpp"
#include "tools/sim/gateway.hpp"
#include "tools/sim/workload.hpp"

namespace pickd::sim {

struct Restart {
  std::uint32_t endpoint = 0;
  double at_s = 0;
};

struct SimOptions {
  std::string policy = "least-predicted-cost";
  std::uint32_t endpoints = 8;
  std::uint64_t capacity_blocks = 5000;  // of 512 tokens, of each engine
  std::uint32_t gateways = 1;            // that share nothing
  double scrape_s = 1;                   // age that a scraped value reaches
  // Of an engine at full speed: a large model on one node of current hardware.
  enginesim::StepRates rates{.step_s = .008, .prefill_s = 7e-5};
  double step_noise = 0;          // of an engine's steps
  double report_noise = 0;        // of latencies that are learned from
  double slow_share = 0;          // of the engines ...
  double slow_factor = .5;        // ... that run at this speed
  double reports_lost_share = 0;  // requests whose reports never come
  double reports_late_share = 0;
  double reports_late_s = 10;
  std::vector<Restart> restarts;  // lose their cache and what runs
  double lease_s = 600;           // after it a reservation without reports ends
  std::uint64_t seed = 1;
};

struct Prefilled {  // one request as it went
  double ttft_s = 0;
  double itl_s = 0;  // NaN: fewer than two tokens
  double predicted_ttft_s = 0;
  double predicted_itl_s = 0;
  double slo_ttft_s = 0;  // as the request wanted; 0: nothing
  double slo_itl_s = 0;
  std::uint32_t endpoint = 0;
  std::uint32_t prompt_tokens = 0;
};

struct SimOutcome {
  std::vector<Prefilled> requests;  // that were served
  std::uint64_t failed = 0;         // longer than a cache, or lost with an engine
  std::uint64_t failed_with_slo = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  double hit_rate = 0;
  double busiest_share = 0;   // of requests
  double queued_share = 0;    // of the engines' time, with somebody there without a first token
  double ttft_mape = 0;       // of all predictions
  double itl_given_mape = 0;  // of ITL given what ran
  std::uint64_t preemptions = 0;
  latency::Coefficients learned;  // of the first gateway, at the end
  double bound_ttft_mean_s = 0;   // see workload.hpp
  double virtual_s = 0;
  double wall_s = 0;
};

SimOutcome simulate(const Workload& workload, const SimOptions& options);

}  // namespace pickd::sim

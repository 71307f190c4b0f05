// Figures: one row of a comparison, from one simulated outcome or the mean of several seeds.
#pragma once

#include <string>
#include <vector>

#include "tools/sim/simulation.hpp"

namespace pickd::sim {

// What counts as served well, where a request names nothing itself.
inline constexpr double kSloTtftS = 2;
inline constexpr double kSloItlS = .05;

struct Figures {
  double hit_rate = 0;
  double ttft_mean_s = 0;
  double ttft_p50_s = 0;
  double ttft_p90_s = 0;
  double ttft_p99_s = 0;
  double itl_p50_s = 0;
  double itl_p90_s = 0;
  double itl_p99_s = 0;
  double goodput = 0;  // share of requests within kSloTtftS and kSloItlS
  double attainment =
      0;  // share, of requests that want a latency, that got what they want; NaN: none
  double busiest_share = 0;
  double queued_share = 0;
  double bound_ttft_mean_s = 0;
  double ttft_mape = 0;
  double itl_given_mape = 0;
  double failed = 0;
  double wall_s = 0;
};

// "87.5%", or "-" for NaN.
std::string share_text(double share);

Figures figures_of(const SimOutcome& outcome);

struct Summary {
  Figures mean;
  double ttft_mean_ci95_s = 0;  // half width, over seeds; 0 for one seed
};
Summary summarise(const std::vector<Figures>& seeds);

}  // namespace pickd::sim

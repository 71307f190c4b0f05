// A pick core over plain memory, filled like a fleet at work: load told and reserved, conversations
// of which each is held by a few endpoints.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::bench {

inline constexpr std::uint32_t kRigEndpointsMax = 4000;

struct ScheduleFigures {
  double pick_p50_ns = 0;
  double pick_p99_ns = 0;
  double remember_p50_ns = 0;
  // TTFT, ITL and cost of all endpoints for one request: a part of a pick that asks for them.
  double predictions_p50_ns = 0;
};

class ScheduleRig {
 public:
  ScheduleRig(std::uint32_t endpoints, std::uint32_t prompt_tokens);
  ~ScheduleRig();

  // Picks and remembers `picks` prompts by the schedule, each pick timed by itself.
  ScheduleFigures measure(const config::SchedulingConfig& scheduling, std::uint32_t picks);

 private:
  double measure_predictions_ns(const pick::PickRequest& request, std::uint32_t turns);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The configuration of a built-in profile; throws std::runtime_error when there is none.
config::SchedulingConfig named_profile(const std::string& name);
config::SchedulingConfig without(config::SchedulingConfig scheduling, const std::string& plugin);

// What two reads of the clock cost: taken off every figure.
double measure_clock_ns();

}  // namespace pickd::bench

// Coefficients: what the learner knows, as picks read it. Immutable once published.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/latency/features.hpp"

namespace pickd::latency {

// Of an endpoint class: a pool, an engine, a kind of hardware.
struct ClassCoefficients {
  TtftFeatures ttft = kTtftPrior;  // seconds for each unit of the scaled features
  ItlFeatures itl = kItlPrior;
  double output_tokens = 200;  // mean of answers
  MeanRequest request;         // what one of others' requests is taken for
  double ttft_p90_factor = 1.3;
  double itl_p90_factor = 1.2;
  bool ttft_ready = false;  // it beats the running mean
  bool itl_ready = false;
};

struct EndpointCoefficients {
  float slowness = 1;      // against its class: 2 takes twice as long
  float queued_share = 0;  // of the time of late, with somebody without a first token
  std::uint16_t class_id = 0;
};

struct Coefficients {
  std::vector<ClassCoefficients> classes = {{}};  // class 0 is always there
  std::vector<EndpointCoefficients> endpoints;    // by id; ids beyond are as EndpointCoefficients{}
  double work_price = 0;                          // kappa: see cost.hpp
  bool sound = true;  // every number is one that can be; else nothing is predicted from them

  const EndpointCoefficients& endpoint(std::uint32_t id) const {
    static constexpr EndpointCoefficients kNone{};
    return id < endpoints.size() ? endpoints[id] : kNone;
  }
  const ClassCoefficients& class_of(std::uint16_t class_id) const {
    return classes[class_id < classes.size() ? class_id : 0];
  }
};

bool is_sound(const ClassCoefficients& of);
bool is_sound(const Coefficients& of);

}  // namespace pickd::latency

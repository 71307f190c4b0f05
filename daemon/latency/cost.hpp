// The cost of sending a request to an endpoint, in seconds, and the latencies predicted there.
//
//   work  = m (a u + c u (n - u/2))          prefill of what is not cached there
//   wait  = max(0, m (aq Q + cq A) - progress)  queue ahead, less the progress of its head
//   step  = m (s0 + sr R + sk K)             a decode step there
//   cost  = wait + work + kappa/m work       work has a price that rises with load
//         + eta L (step / (1 - min(.9, b))   own decode,
//                  + m R (sr + sk n))        and the slow-down of others
//
//   kappa = 2 min(4, rho / (1 - rho)) + min(10, F)
//
// kappa is how many requests are held up by a second of work: those that will come while the queue
// lasts. Two guesses of them are added. rho, the mean share of time with a queue, tells of steady
// load and needs half a minute to rise. F, who waits there now, tells of a burst: as many are
// likely to follow as have come. An endpoint without a queue is free to compute what others hold
// already, one with a long queue is not.
//
// n prompt tokens, u uncached tokens, Q and A tokens and attention work queued there, R requests in
// flight and K their KV tokens, b share of time with a queue, m slowness, L mean answer. All from
// counts, without a clock: the age of the head is in the load.
//
// Computed for many endpoints side by side: a pick of a hundred candidates is a few hundred vector
// operations, with one division for each endpoint.
#pragma once

#include "daemon/latency/coefficients.hpp"

namespace pickd::latency {

// A second of decode delay against a second of TTFT.
inline constexpr double kDecodePrice = 0.1;
inline constexpr float kQueuedShareMax = 0.9F;
// Seconds of others for a second of work under steady load, for each rho / (1 - rho).
inline constexpr double kWorkPrice = 2;
inline constexpr double kWorkPriceRatioMax = 4;
// Requests that follow in a burst, at most.
inline constexpr float kFollowersMax = 10;

// The part of kappa that is the same everywhere, for the mean share of endpoints with a queue.
double work_price(double queued_share_mean);

// Endpoints of one class, a column a measure.
struct CostLanes {
  static constexpr std::size_t kMax = 64;
  using Column = float[kMax];

  std::size_t count = 0;
  alignas(64) Column queued_tokens;
  Column queued_work;
  Column queued_requests;
  Column running;
  Column kv_tokens;
  Column decoding;
  Column decoding_tokens;
  Column head_tokens;
  Column head_work;
  Column head_age_s;
  Column uncached;
  Column slowness;
  Column queued_share;

  void add(const EndpointLoad& load, const EndpointCoefficients& endpoint, float uncached_tokens) {
    const std::size_t at = count++;
    queued_tokens[at] = load.queued_tokens;
    queued_work[at] = load.queued_work;
    queued_requests[at] = load.queued_requests;
    running[at] = load.running;
    kv_tokens[at] = load.kv_tokens;
    decoding[at] = load.decoding();
    decoding_tokens[at] = load.decoding_tokens();
    head_tokens[at] = load.head_tokens;
    head_work[at] = load.head_work;
    head_age_s[at] = load.head_age_s;
    uncached[at] = uncached_tokens;
    slowness[at] = endpoint.slowness;
    queued_share[at] = endpoint.queued_share;
  }
};

struct PredictionLanes {
  CostLanes::Column ttft_s;
  CostLanes::Column itl_s;
  CostLanes::Column cost_s;
  CostLanes::Column progress_s;  // of the head of the queue, as credited
};

// Predicts for a prompt of `prompt` tokens, of which each lane says how many are computed there.
// What stands behind `lanes.count` is overwritten in both.
void predict(const ClassCoefficients& rates, double work_price, CostLanes& lanes, double prompt,
             PredictionLanes& predictions);

struct Prediction {
  double ttft_s = 0;
  double itl_s = 0;
  double cost_s = 0;
  double progress_s = 0;
};

// The same of one endpoint.
Prediction predict(const ClassCoefficients& rates, const EndpointCoefficients& endpoint,
                   double work_price, const EndpointLoad& load, double uncached, double prompt);

}  // namespace pickd::latency

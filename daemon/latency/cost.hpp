// The cost of sending a request to an endpoint, in seconds, and the latencies predicted there.
//
//   work  = m (a u + c u (n - u/2))          prefill of what is not cached there
//   wait  = max(0, m (aq Q + cq A) - progress)  queue ahead, less the progress of its head
//   step  = m (s0 + sr R + sk K)             a decode step there
//   cost  = wait + work + kappa/m work       fleet work has a price that rises with load
//         + eta L (step / (1 - min(.9, b))   own decode,
//                  + m R (sr + sk n))        and the slow-down of others
//
// n prompt tokens, u uncached tokens, Q and A tokens and attention work queued there, R requests in
// flight and K their KV tokens, b share of time with a queue, m slowness, L mean answer. All from
// own counts, without a clock: the age of the head is in the load.
#pragma once

#include "daemon/latency/coefficients.hpp"

namespace pickd::latency {

// A second of decode delay against a second of TTFT.
inline constexpr double kDecodePrice = 0.1;
inline constexpr double kQueuedShareMax = 0.9;
// Work in the fleet: kappa = kWorkPrice min(4, rho / (1 - rho)).
inline constexpr double kWorkPrice = 1.5;
inline constexpr double kWorkPriceRatioMax = 4;

struct Prediction {
  double ttft_s = 0;
  double itl_s = 0;
  double cost_s = 0;
  double progress_s = 0;  // of the head of the queue, as credited
};

// `prompt` tokens of which `uncached` are computed there.
Prediction predict(const ClassCoefficients& rates, const EndpointCoefficients& endpoint,
                   double work_price, const EndpointLoad& load, double uncached, double prompt);

// kappa for the mean share of endpoints with a queue.
double work_price(double queued_share_mean);

}  // namespace pickd::latency

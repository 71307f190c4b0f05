#include "daemon/latency/cost.hpp"

#include <algorithm>

namespace pickd::latency {

namespace {

// A head that gets no token for three times its work and a second more counts as silent: what is
// beyond is waited for by whoever comes.
constexpr double kSilentFactor = 3;
constexpr double kSilentSeconds = 1;

}  // namespace

double work_price(double queued_share_mean) {
  const double share = std::clamp(queued_share_mean, 0.0, .95);
  return kWorkPrice * std::min(kWorkPriceRatioMax, share / (1 - share));
}

Prediction predict(const ClassCoefficients& rates, const EndpointCoefficients& endpoint,
                   double price, const EndpointLoad& load, double uncached, double prompt) {
  const double m = endpoint.slowness;
  const double token_s = rates.ttft[3] * kTtftScales[3];
  const double work_s = rates.ttft[4] * kTtftScales[4];
  const double queued_token_s = rates.ttft[1] * kTtftScales[1];
  const double queued_work_s = rates.ttft[2] * kTtftScales[2];
  const double sequence_s = rates.itl[1] * kItlScales[1];
  const double kv_token_s = rates.itl[2] * kItlScales[2];

  Prediction predicted;
  const double head_s = m * (queued_token_s * load.head_tokens + queued_work_s * load.head_work);
  predicted.progress_s = std::min(load.head_age_s, head_s);
  const double queue_s =
      m * (queued_token_s * load.queued_tokens + queued_work_s * load.queued_work);
  const double silent_s = std::max(0.0, load.head_age_s - kSilentFactor * head_s - kSilentSeconds);
  const double wait_s = std::max(0.0, queue_s - predicted.progress_s) + silent_s;
  const double prefill_s = m * (token_s * uncached + work_s * attention_work(uncached, prompt));
  const double decode_s =
      m * (rates.ttft[5] * kTtftScales[5] * load.decoding() +
           rates.ttft[6] * kTtftScales[6] * load.decoding_tokens() + rates.ttft[0]);
  predicted.ttft_s = wait_s + prefill_s + decode_s;

  const double step_s =
      m * (rates.itl[0] + sequence_s * load.running + kv_token_s * load.kv_tokens);
  const double own_step_s = step_s / (1 - std::min(kQueuedShareMax, endpoint.queued_share));
  predicted.itl_s = own_step_s + m * (sequence_s + kv_token_s * prompt);
  const double others_s = m * load.running * (sequence_s + kv_token_s * prompt);
  predicted.cost_s = wait_s + prefill_s + price / m * prefill_s +
                     kDecodePrice * rates.output_tokens * (own_step_s + others_s);
  return predicted;
}

}  // namespace pickd::latency

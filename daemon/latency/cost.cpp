#include "daemon/latency/cost.hpp"

#include <algorithm>
#include <cstring>

namespace pickd::latency {

namespace {

// An endpoint whose head gets no token for three times its work and a second more counts as silent:
// what is beyond is waited for by whoever comes. But not while few wait there: one request without
// a first token is more often a report that is late or lost than an engine that stands still, and
// who shuns the engine for it never learns.
constexpr float kSilentFactor = 3;
constexpr float kSilentSeconds = 1;
constexpr float kSilentRequestsMin = 3;
// A head of few that is due for so long waits no more, so that nobody is held up behind it.
constexpr float kOverdueFactor = 2;
constexpr float kOverdueSeconds = .5F;

// Four endpoints at a time: every processor we run on has vectors of that width, and the compilers
// turn these operators into them without being asked for more than the baseline.
using Lanes = float __attribute__((vector_size(16)));
constexpr std::size_t kWidth = sizeof(Lanes) / sizeof(float);
static_assert(CostLanes::kMax % kWidth == 0);

Lanes load(const CostLanes::Column& column, std::size_t at) {
  Lanes lanes;
  std::memcpy(&lanes, &column[at], sizeof lanes);
  return lanes;
}
void store(CostLanes::Column& column, std::size_t at, Lanes lanes) {
  std::memcpy(&column[at], &lanes, sizeof lanes);
}
Lanes all(float value) { return Lanes{value, value, value, value}; }
Lanes lesser(Lanes a, Lanes b) { return a < b ? a : b; }
Lanes greater(Lanes a, Lanes b) { return a > b ? a : b; }

// The rates of a class as the formula uses them: seconds for one of each.
struct Rates {
  explicit Rates(const ClassCoefficients& of)
      : queued_token_s(scaled(of.ttft[1], kTtftScales[1])),
        queued_work_s(scaled(of.ttft[2], kTtftScales[2])),
        token_s(scaled(of.ttft[3], kTtftScales[3])),
        work_s(scaled(of.ttft[4], kTtftScales[4])),
        first_s(all(static_cast<float>(of.ttft[0]))),
        first_sequence_s(scaled(of.ttft[5], kTtftScales[5])),
        first_kv_token_s(scaled(of.ttft[6], kTtftScales[6])),
        step_s(all(static_cast<float>(of.itl[0]))),
        sequence_s(scaled(of.itl[1], kItlScales[1])),
        kv_token_s(scaled(of.itl[2], kItlScales[2])) {}

  static Lanes scaled(double coefficient, double scale) {
    return all(static_cast<float>(coefficient * scale));
  }

  Lanes queued_token_s;
  Lanes queued_work_s;
  Lanes token_s;
  Lanes work_s;
  Lanes first_s;
  Lanes first_sequence_s;
  Lanes first_kv_token_s;
  Lanes step_s;
  Lanes sequence_s;
  Lanes kv_token_s;
};

// The last endpoint again and again, so that vectors are whole.
void fill_last_vector(CostLanes& lanes) {
  for (std::size_t at = lanes.count; at % kWidth != 0; ++at) {
    for (float* column :
         {lanes.queued_tokens, lanes.queued_work, lanes.queued_requests, lanes.running,
          lanes.kv_tokens, lanes.decoding, lanes.decoding_tokens, lanes.head_tokens,
          lanes.head_work, lanes.head_age_s, lanes.uncached, lanes.slowness, lanes.queued_share})
      column[at] = column[at - 1];
  }
}

}  // namespace

double work_price(double queued_share_mean) {
  const double share = std::clamp(queued_share_mean, 0.0, .95);
  return kWorkPrice * std::min(kWorkPriceRatioMax, share / (1 - share));
}

void predict(const ClassCoefficients& of, double price, CostLanes& lanes, double prompt_tokens,
             PredictionLanes& out) {
  const Rates rates(of);
  const Lanes zero = all(0);
  const Lanes one = all(1);
  const Lanes prompt = all(static_cast<float>(prompt_tokens));
  const Lanes work_price = all(static_cast<float>(price));
  const Lanes decode_price = all(static_cast<float>(kDecodePrice * of.output_tokens));
  const Lanes added_step_s = rates.sequence_s + rates.kv_token_s * prompt;  // by this request
  fill_last_vector(lanes);
  for (std::size_t at = 0; at < lanes.count; at += kWidth) {
    const Lanes m = load(lanes.slowness, at);
    const Lanes head_age_s = load(lanes.head_age_s, at);
    const Lanes head_s = m * (rates.queued_token_s * load(lanes.head_tokens, at) +
                              rates.queued_work_s * load(lanes.head_work, at));
    const Lanes progress_s = lesser(head_age_s, head_s);
    const Lanes queue_s = m * (rates.queued_token_s * load(lanes.queued_tokens, at) +
                               rates.queued_work_s * load(lanes.queued_work, at));
    const Lanes queued = load(lanes.queued_requests, at);
    const Lanes beyond_s =
        greater(zero, head_age_s - all(kSilentFactor) * head_s - all(kSilentSeconds));
    const Lanes silent_s = queued >= all(kSilentRequestsMin) ? beyond_s : zero;
    const Lanes wait_s = greater(zero, queue_s - progress_s) + silent_s;
    const Lanes uncached = load(lanes.uncached, at);
    const Lanes class_prefill_s =
        rates.token_s * uncached + rates.work_s * (uncached * (prompt - all(.5F) * uncached));
    const Lanes prefill_s = m * class_prefill_s;
    const Lanes decode_s =
        m * (rates.first_sequence_s * load(lanes.decoding, at) +
             rates.first_kv_token_s * load(lanes.decoding_tokens, at) + rates.first_s);
    store(out.ttft_s, at, wait_s + prefill_s + decode_s);
    store(out.progress_s, at, progress_s);

    const Lanes running = load(lanes.running, at);
    const Lanes step_s = m * (rates.step_s + rates.sequence_s * running +
                              rates.kv_token_s * load(lanes.kv_tokens, at));
    const Lanes share = lesser(load(lanes.queued_share, at), all(kQueuedShareMax));
    const Lanes own_step_s = step_s / (one - share);
    const Lanes others_s = m * running * added_step_s;
    store(out.itl_s, at, own_step_s + m * added_step_s);
    const Lanes overdue_s = head_age_s - all(kOverdueFactor) * head_s - all(kOverdueSeconds);
    const Lanes followers = overdue_s > zero && queued < all(kSilentRequestsMin) ? zero : queued;
    const Lanes price_here = work_price + lesser(all(kFollowersMax), followers);
    store(
        out.cost_s, at,
        wait_s + prefill_s + price_here * class_prefill_s + decode_price * (own_step_s + others_s));
  }
}

Prediction predict(const ClassCoefficients& rates, const EndpointCoefficients& endpoint,
                   double price, const EndpointLoad& load, double uncached, double prompt) {
  CostLanes lanes;
  PredictionLanes predictions;
  lanes.add(load, endpoint, static_cast<float>(uncached));
  predict(rates, price, lanes, prompt, predictions);
  return {predictions.ttft_s[0], predictions.itl_s[0], predictions.cost_s[0],
          predictions.progress_s[0]};
}

}  // namespace pickd::latency

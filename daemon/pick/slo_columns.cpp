#include "daemon/pick/slo_columns.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/endpoints/topology.hpp"
#include "daemon/latency/miss_chance.hpp"

namespace pickd::pick {

namespace {

constexpr float kSecondsPerMs = 1e-3F;
constexpr float kMsPerS = 1e3F;

// What one more request costs those that run beside it, for each of their tokens.
struct SlowDown {
  float step_ms;     // a step is longer by so much
  float prefill_ms;  // its prefill, spread over an answer
};

SlowDown slow_down(const latency::ClassCoefficients& rates, float slowness, float uncached,
                   float prompt) {
  const double prefill_s =
      rates.ttft[3] * latency::kTtftScales[3] * uncached +
      rates.ttft[4] * latency::kTtftScales[4] * latency::attention_work(uncached, prompt);
  const double step_s =
      rates.itl[1] * latency::kItlScales[1] + rates.itl[2] * latency::kItlScales[2] * prompt;
  return {slowness * static_cast<float>(step_s) * kMsPerS,
          slowness * static_cast<float>(prefill_s / rates.output_tokens) * kMsPerS};
}

// How many more of those in flight there are expected to miss the time between tokens that they
// were promised. `itl_ms`: predicted for this request, its own step included.
float misses_of_others(const latency::ItlPromises& promises, std::uint32_t endpoint, float itl_ms,
                       const SlowDown& slower) {
  float misses = 0;
  promises.each(endpoint, [&](std::uint32_t count, float promised_ms) {
    const float with = latency::miss_chance((itl_ms + slower.prefill_ms) / promised_ms);
    const float without = latency::miss_chance((itl_ms - slower.step_ms) / promised_ms);
    misses += static_cast<float>(count) * (with - without);
  });
  return misses;
}

}  // namespace

void produce_slo(const Flights& flights, const latency::Coefficients& coefficients,
                 const PickRequest& request, const SourceSettings& settings,
                 Candidates& candidates) {
  const auto ttft = candidates.column(Column::kPredictedTtft);
  const auto itl = candidates.column(Column::kPredictedItl);
  const auto uncached = candidates.column(Column::kUncachedTokens);
  const auto ttft_percentile = candidates.column(Column::kTtftPercentile);
  const auto itl_percentile = candidates.column(Column::kItlPercentile);
  const auto ttft_headroom = candidates.column(Column::kTtftHeadroom);
  const auto itl_headroom = candidates.column(Column::kItlHeadroom);
  const auto misses = candidates.column(Column::kMissesOfOthers);
  const auto buffer = static_cast<float>(settings.slo_buffer);
  const auto prompt = static_cast<float>(request.prompt_tokens);
  const bool mean = settings.headroom_of_mean;
  const float slo_ttft_s = request.slo_ttft_ms > 0 ? request.slo_ttft_ms * kSecondsPerMs : kUnknown;
  const float slo_itl_ms =
      request.slo_itl_ms > 0 ? request.slo_itl_ms : std::numeric_limits<float>::infinity();
  for (std::size_t at = 0; at < candidates.count; ++at) {
    const std::uint32_t id = candidates.ids()[at];
    const std::size_t class_id = candidates.endpoints()[at]->latency_class;
    const latency::ClassCoefficients& rates =
        coefficients.classes[class_id < coefficients.classes.size() ? class_id : 0];
    const float ttft_s = ttft[at] * static_cast<float>(rates.ttft_p90_factor);
    const float itl_s = itl[at] * static_cast<float>(rates.itl_p90_factor);
    ttft_percentile[at] = rates.ttft_ready ? ttft_s : kUnknown;
    itl_percentile[at] = rates.itl_ready ? itl_s : kUnknown;
    ttft_headroom[at] = slo_ttft_s - (rates.ttft_ready && !mean ? ttft_s : ttft[at]);
    const float promised_ms = std::min(slo_itl_ms, flights.promises().tightest_ms(id));
    itl_headroom[at] = std::isfinite(promised_ms) ? promised_ms * kSecondsPerMs * buffer -
                                                        (rates.itl_ready && !mean ? itl_s : itl[at])
                                                  : kUnknown;
    const auto slowness = static_cast<float>(coefficients.endpoint(id).slowness);
    misses[at] = misses_of_others(flights.promises(), id, itl[at] * kMsPerS,
                                  slow_down(rates, slowness, uncached[at], prompt));
  }
}

}  // namespace pickd::pick

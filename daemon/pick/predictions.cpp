#include "daemon/pick/predictions.hpp"

#include <algorithm>

#include "abi/prefix_word.hpp"
#include "daemon/endpoints/topology.hpp"

namespace pickd::pick {

namespace {

struct Endpoint {
  latency::EndpointLoad load;
  latency::EndpointCoefficients coefficients;
  double uncached = 0;
};

// An engine computes at least the block with the last token, whose logits it needs.
double uncached_of(const PickRequest& request, std::uint32_t block_tokens, float column) {
  if (request.prompt_tokens == 0) return 0;
  const std::uint32_t tail = (request.prompt_tokens - 1) % block_tokens + 1;
  return std::max(static_cast<double>(column), static_cast<double>(tail));
}

Endpoint endpoint_at(const Flights& flights, const latency::Coefficients& coefficients,
                     const PickRequest& request, std::uint32_t block_tokens,
                     const Candidates& candidates, std::size_t at) {
  Endpoint endpoint;
  const std::uint32_t id = candidates.ids()[at];
  endpoint.load =
      flights.live().load(id, abi::LifeWord{candidates.lives()[at]}.generation(), request.now_ns);
  endpoint.coefficients = coefficients.endpoint(id);
  endpoint.coefficients.class_id = candidates.endpoints()[at]->latency_class;
  endpoint.uncached =
      uncached_of(request, block_tokens, candidates.column(Column::kUncachedTokens)[at]);
  return endpoint;
}

}  // namespace

void produce_predictions(const Flights& flights, const latency::Coefficients& coefficients,
                         const PickRequest& request, std::uint32_t block_tokens,
                         Candidates& candidates) {
  const auto ttft = candidates.column(Column::kPredictedTtft);
  const auto itl = candidates.column(Column::kPredictedItl);
  const auto cost = candidates.column(Column::kCost);
  for (std::size_t at = 0; at < candidates.count; ++at) {
    const Endpoint endpoint =
        endpoint_at(flights, coefficients, request, block_tokens, candidates, at);
    const latency::Prediction predicted = latency::predict(
        coefficients.class_of(endpoint.coefficients), endpoint.coefficients,
        coefficients.work_price, endpoint.load, endpoint.uncached, request.prompt_tokens);
    ttft[at] = static_cast<float>(predicted.ttft_s);
    itl[at] = static_cast<float>(predicted.itl_s);
    cost[at] = static_cast<float>(predicted.cost_s);
  }
}

PickFacts facts_of(const Flights& flights, const latency::Coefficients& coefficients,
                   const PickRequest& request, std::uint32_t block_tokens,
                   const Candidates& candidates, std::size_t at) {
  const Endpoint endpoint =
      endpoint_at(flights, coefficients, request, block_tokens, candidates, at);
  const latency::ClassCoefficients& rates = coefficients.class_of(endpoint.coefficients);
  PickFacts facts;
  facts.load = endpoint.load;
  facts.predicted = latency::predict(rates, endpoint.coefficients, coefficients.work_price,
                                     endpoint.load, endpoint.uncached, request.prompt_tokens);
  facts.slowness = endpoint.coefficients.slowness;
  facts.class_id = endpoint.coefficients.class_id;
  facts.kv_tokens = request.prompt_tokens + static_cast<std::uint32_t>(rates.output_tokens / 2);
  facts.stream = request.stream;
  return facts;
}

}  // namespace pickd::pick

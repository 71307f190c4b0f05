#include "daemon/pick/predictions.hpp"

#include <algorithm>

#include "abi/prefix_word.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/told.hpp"

namespace pickd::pick {

namespace {

// An engine computes at least the block with the last token, whose logits it needs.
float uncached_of(const PickRequest& request, std::uint32_t block_tokens, float column) {
  if (request.prompt_tokens == 0) return 0;
  const std::uint32_t tail = (request.prompt_tokens - 1) % block_tokens + 1;
  return std::max(column, static_cast<float>(tail));
}

std::uint16_t class_at(const Candidates& candidates, std::size_t at) {
  return candidates.endpoints()[at]->latency_class;
}

// Ours by own counts, and on top of it what the engine told of others': as many requests wait among
// these as among all that it has.
latency::EndpointLoad load_at(const PredictionSources& sources, const PickRequest& request,
                              const Candidates& candidates, std::size_t at,
                              const latency::MeanRequest& mean) {
  const std::uint32_t id = candidates.ids()[at];
  latency::EndpointLoad load = sources.flights.live().load(
      id, abi::LifeWord{candidates.lives()[at]}.generation(), request.now_ns);
  const abi::EndpointRecord& record = sources.records[id];
  const std::uint32_t foreign = record.foreign_requests.load(std::memory_order_relaxed);
  if (foreign == 0 || foreign == abi::kUnknown32 || told_is_stale(record, sources.tick))
    return load;
  const std::uint32_t waiting = known_or_none(record.waiting.load(std::memory_order_relaxed));
  const std::uint32_t running = known_or_none(record.running.load(std::memory_order_relaxed));
  const std::uint64_t all = std::uint64_t{waiting} + running;
  const auto others = static_cast<float>(foreign);
  const float waits = all == 0 ? 0 : others * static_cast<float>(waiting) / static_cast<float>(all);
  latency::add_foreign(load, waits, others - waits, mean);
  return load;
}

}  // namespace

void produce_predictions(const PredictionSources& sources, const PickRequest& request,
                         Candidates& candidates) {
  const latency::Coefficients& coefficients = sources.coefficients;
  const auto uncached = candidates.column(Column::kUncachedTokens);
  latency::CostLanes lanes;
  latency::PredictionLanes predictions;
  // As many side by side as there are of one class, in the order of the candidates.
  for (std::size_t from = 0; from < candidates.count; from += lanes.count) {
    const std::uint16_t class_id = class_at(candidates, from);
    const latency::ClassCoefficients& rates = coefficients.class_of(class_id);
    lanes.count = 0;
    for (std::size_t at = from; at < candidates.count && lanes.count < latency::CostLanes::kMax &&
                                class_at(candidates, at) == class_id;
         ++at) {
      lanes.add(load_at(sources, request, candidates, at, rates.request),
                coefficients.endpoint(candidates.ids()[at]),
                uncached_of(request, sources.block_tokens, uncached[at]));
    }
    latency::predict(rates, coefficients.work_price, lanes, request.prompt_tokens, predictions);
    const auto copy = [&](Column column, const latency::CostLanes::Column& lane) {
      std::copy_n(lane, lanes.count, candidates.column(column).data() + from);
    };
    copy(Column::kPredictedTtft, predictions.ttft_s);
    copy(Column::kPredictedItl, predictions.itl_s);
    copy(Column::kCost, predictions.cost_s);
  }
}

PickFacts facts_of(const PredictionSources& sources, const PickRequest& request,
                   const Candidates& candidates, std::size_t at) {
  const std::uint16_t class_id = class_at(candidates, at);
  const latency::ClassCoefficients& rates = sources.coefficients.class_of(class_id);
  const latency::EndpointCoefficients& endpoint =
      sources.coefficients.endpoint(candidates.ids()[at]);
  const float uncached =
      uncached_of(request, sources.block_tokens, candidates.column(Column::kUncachedTokens)[at]);
  PickFacts facts;
  facts.load = load_at(sources, request, candidates, at, rates.request);
  facts.predicted = latency::predict(rates, endpoint, sources.coefficients.work_price, facts.load,
                                     uncached, request.prompt_tokens);
  facts.slowness = endpoint.slowness;
  facts.class_id = class_id;
  facts.kv_tokens = request.prompt_tokens + static_cast<std::uint32_t>(rates.output_tokens / 2);
  facts.slo_itl_ms = request.slo_itl_ms;
  facts.stream = request.stream;
  return facts;
}

}  // namespace pickd::pick

#include "daemon/pick/predictions.hpp"

#include <algorithm>

#include "abi/prefix_word.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/told.hpp"

namespace pickd::pick {

namespace {

// An engine computes at least the block with the last token, whose logits it needs.
float computed_tokens_min(const PickRequest& request, std::uint32_t block_tokens) {
  if (request.prompt_tokens == 0) return 0;
  return static_cast<float>((request.prompt_tokens - 1) % block_tokens + 1);
}

// What others have there by what the engine told: as many of them wait as of all that it has.
void add_others(const abi::EndpointRecord& record, std::uint32_t foreign,
                const latency::MeanRequest& mean, latency::EndpointLoad& load) {
  const std::uint32_t waiting = known_or_none(record.waiting.load(std::memory_order_relaxed));
  const std::uint32_t running = known_or_none(record.running.load(std::memory_order_relaxed));
  const std::uint64_t all = std::uint64_t{waiting} + running;
  const auto others = static_cast<float>(foreign);
  const float waits = all == 0 ? 0 : others * static_cast<float>(waiting) / static_cast<float>(all);
  latency::add_foreign(load, waits, others - waits, mean);
}

// Ours by own counts, and that of others on top of it.
latency::EndpointLoad load_at(const PredictionSources& sources, const latency::LiveLoad& live,
                              std::uint32_t id, std::uint64_t life, std::uint64_t now_ns,
                              const latency::MeanRequest& mean) {
  latency::EndpointLoad load = live.load(id, abi::LifeWord{life}.generation(), now_ns);
  const abi::EndpointRecord& record = sources.records[id];
  const std::uint32_t foreign = record.foreign_requests.load(std::memory_order_relaxed);
  if (foreign != 0 && foreign != abi::kUnknown32 && !told_is_stale(record, sources.tick))
    add_others(record, foreign, mean, load);
  return load;
}

}  // namespace

// Flattened, so that what is read of a candidate stays in registers; all that is called here is
// small, but for what is declared elsewhere.
[[gnu::flatten]] void produce_predictions(const PredictionSources& sources,
                                          const PickRequest& request, Candidates& candidates) {
  // Everything that is the same for all candidates stands out here.
  const latency::Coefficients& coefficients = sources.coefficients;
  const latency::LiveLoad& live = sources.flights.live();
  const latency::EndpointCoefficients* const known = coefficients.endpoints.data();
  const std::size_t known_ids = coefficients.endpoints.size();
  const latency::EndpointCoefficients none;
  const std::uint64_t now_ns = request.now_ns;
  const float computed_min = computed_tokens_min(request, sources.block_tokens);
  const std::size_t count = candidates.count;
  const std::uint16_t* const ids = candidates.ids();
  const std::uint64_t* const lives = candidates.lives();
  const std::uint16_t* const classes = candidates.latency_classes();
  const float* const uncached = candidates.column(Column::kUncachedTokens).data();
  latency::CostLanes lanes;
  latency::PredictionLanes predictions;
  constexpr std::size_t kAhead = 8;
  // As many side by side as there are of one class, in the order of the candidates.
  for (std::size_t from = 0; from < count; from += lanes.count) {
    const std::uint16_t class_id = classes[from];
    const latency::ClassCoefficients& rates = coefficients.class_of(class_id);
    const std::size_t end = std::min(count, from + latency::CostLanes::kMax);
    lanes.count = 0;
    for (std::size_t at = from; at < end && classes[at] == class_id; ++at) {
      live.prefetch_load(ids[std::min(at + kAhead, count - 1)]);
      const std::uint32_t id = ids[at];
      const float computed = uncached[at] > computed_min ? uncached[at] : computed_min;
      lanes.add(load_at(sources, live, id, lives[at], now_ns, rates.request),
                id < known_ids ? known[id] : none, computed);
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
  const std::uint16_t class_id = candidates.latency_classes()[at];
  const std::uint32_t id = candidates.ids()[at];
  const latency::ClassCoefficients& rates = sources.coefficients.class_of(class_id);
  const latency::EndpointCoefficients& endpoint = sources.coefficients.endpoint(id);
  const float uncached = std::max(candidates.column(Column::kUncachedTokens)[at],
                                  computed_tokens_min(request, sources.block_tokens));
  PickFacts facts;
  facts.load = load_at(sources, sources.flights.live(), id, candidates.lives()[at], request.now_ns,
                       rates.request);
  facts.predicted = latency::predict(rates, endpoint, sources.coefficients.work_price, facts.load,
                                     uncached, request.prompt_tokens);
  facts.uncached_tokens = static_cast<std::uint32_t>(uncached);
  facts.slowness = endpoint.slowness;
  facts.class_id = class_id;
  facts.kv_tokens = request.prompt_tokens + static_cast<std::uint32_t>(rates.output_tokens / 2);
  facts.slo_itl_ms = request.slo_itl_ms;
  facts.stream = request.stream;
  return facts;
}

}  // namespace pickd::pick

#include "daemon/admin/metric_tables.hpp"

#include <algorithm>
#include <cmath>

namespace pickd::admin {

namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }
std::optional<double> number(std::optional<std::uint64_t> value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

using Endpoints = std::span<const EndpointFacts* const>;

// Mean over those that know it.
template <typename Value>
std::optional<double> mean(Endpoints endpoints, Value value) {
  double sum = 0;
  std::size_t count = 0;
  for (const EndpointFacts* endpoint : endpoints) {
    const std::optional<double> one = value(*endpoint);
    if (!one) continue;
    sum += *one;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional<double>(sum / static_cast<double>(count));
}

template <typename Value>
std::optional<double> deviation(Endpoints endpoints, Value value) {
  const std::optional<double> middle = mean(endpoints, value);
  const std::optional<double> square =
      mean(endpoints, [&](const EndpointFacts& endpoint) -> std::optional<double> {
        const std::optional<double> one = value(endpoint);
        return one ? std::optional<double>((*one - *middle) * (*one - *middle)) : std::nullopt;
      });
  return square ? std::optional<double>(std::sqrt(*square)) : std::nullopt;
}

std::optional<double> kv_use(const EndpointFacts& endpoint) { return endpoint.kv_use; }
std::optional<double> waiting(const EndpointFacts& endpoint) { return number(endpoint.waiting); }
std::optional<double> running(const EndpointFacts& endpoint) { return number(endpoint.running); }

// clang-format off
constexpr PlainMetric kPlain[] = {
    // name, help, EPP's, value
    {"pickd_uptime_seconds", "Since the daemon started.", "",
     [](const Facts& facts) { return facts.uptime_s; }},
    {"pickd_endpoints", "Endpoints known.", "",
     [](const Facts& facts) { return number(facts.endpoints.size()); }},
    {"pickd_endpoints_ready", "Endpoints that are ready.", "llm_d_epp_ready_endpoints",
     [](const Facts& facts) {
       return number(static_cast<std::uint64_t>(std::count_if(
           facts.endpoints.begin(), facts.endpoints.end(),
           [](const EndpointFacts& endpoint) { return endpoint.state == "ready"; })));
     }},
    {"pickd_clients", "Clients connected.", "",
     [](const Facts& facts) { return number(facts.clients); }},
    {"pickd_channels", "Channels open.", "",
     [](const Facts& facts) { return number(facts.channels); }},
    {"pickd_workers", "Threads that answer picks.", "",
     [](const Facts& facts) { return number(facts.workers); }},
    {"pickd_reservations", "Picked requests in flight.", "llm_d_epp_request_running",
     [](const Facts& facts) { return number(facts.reservations); }},
    {"pickd_reservations_max", "Reservations that there is room for (reservations.max).", "",
     [](const Facts& facts) { return number(facts.reservations_max); }},
    {"pickd_prefix_words", "(Block, endpoint) pairs that the prefix table has room for.", "",
     [](const Facts& facts) { return number(facts.prefix_words); }},
    {"pickd_prefix_words_live", "Of these, those that live: an upper bound between two sweeps.",
     "llm_d_epp_prefix_indexer_size",
     [](const Facts& facts) { return number(facts.prefix_live); }},
    {"pickd_state_bytes", "Size of the state segment.", "",
     [](const Facts& facts) { return number(facts.state_bytes); }},
    {"pickd_block_tokens", "Tokens of a prefix block (state.block_tokens).", "",
     [](const Facts& facts) { return number(facts.block_tokens); }},
};

constexpr EndpointMetric kEndpoint[] = {
    // name, type, adds up, help, EPP's, value
    {"pickd_endpoint_picks_total", MetricType::kCounter, true,
     "Picks that went there since it joined.", "llm_d_epp_scheduler_attempts_total{endpoint_name}",
     [](const EndpointFacts& of) { return std::optional(number(of.picks)); }},
    {"pickd_endpoint_prompt_blocks_total", MetricType::kCounter, true,
     "Prefix blocks in these picks.", "",
     [](const EndpointFacts& of) { return std::optional(number(of.prompt_blocks)); }},
    {"pickd_endpoint_match_blocks_total", MetricType::kCounter, true,
     "Of these, blocks that it was assumed to hold.", "",
     [](const EndpointFacts& of) { return std::optional(number(of.match_blocks)); }},
    {"pickd_endpoint_inflight_requests", MetricType::kGauge, true,
     "Picked requests in flight there.", "llm_d_epp_inflight_requests",
     [](const EndpointFacts& of) { return std::optional(number(of.inflight_requests)); }},
    {"pickd_endpoint_inflight_tokens", MetricType::kGauge, true,
     "Uncached prompt tokens of requests there that have no first token yet.",
     "llm_d_epp_inflight_tokens",
     [](const EndpointFacts& of) { return std::optional(number(of.inflight_tokens)); }},
    {"pickd_endpoint_waiting", MetricType::kGauge, true,
     "Requests that wait in the engine, as it told last.", "llm_d_epp_per_endpoint_queue_size",
     waiting},
    {"pickd_endpoint_running", MetricType::kGauge, true,
     "Requests that run in the engine, as it told last.", "", running},
    {"pickd_endpoint_kv_use_ratio", MetricType::kGauge, false,
     "Share of the engine's KV cache in use, as it told last.", "", kv_use},
    {"pickd_endpoint_cached_blocks", MetricType::kGauge, true,
     "Prefix blocks that it is assumed to hold.", "",
     [](const EndpointFacts& of) { return std::optional(number(of.live_blocks)); }},
    {"pickd_endpoint_capacity_blocks", MetricType::kGauge, true,
     "Blocks that its KV cache has room for; no line where nobody told.", "",
     [](const EndpointFacts& of) {
       return of.capacity_blocks == 0 ? std::nullopt : std::optional(number(of.capacity_blocks));
     }},
    {"pickd_endpoint_load_age_seconds", MetricType::kGauge, false,
     "Since the engine told its load.", "",
     [](const EndpointFacts& of) { return of.load_age_s; }},
    {"pickd_endpoint_scrape_failures", MetricType::kGauge, true,
     "Scrapes of it that failed, in a row.", "llm_d_epp_datalayer_poll_errors_total",
     [](const EndpointFacts& of) { return std::optional(number(of.scrape_failures)); }},
};

constexpr PoolMetric kPool[] = {
    // name, help, EPP's, value
    {"pickd_pool_endpoints_ready", "Endpoints of the pool that are ready.",
     "llm_d_epp_ready_endpoints",
     [](Endpoints all) {
       return std::optional(number(static_cast<std::uint64_t>(std::count_if(
           all.begin(), all.end(), [](const auto* one) { return one->state == "ready"; }))));
     }},
    {"pickd_pool_kv_use_ratio_mean", "Mean KV cache use of the endpoints that told theirs.",
     "llm_d_epp_average_kv_cache_utilization", [](Endpoints all) { return mean(all, kv_use); }},
    {"pickd_pool_kv_use_ratio_deviation", "Standard deviation of it.",
     "llm_d_epp_std_dev_kv_cache_utilization",
     [](Endpoints all) { return deviation(all, kv_use); }},
    {"pickd_pool_waiting_mean", "Mean of the requests that wait in an engine.",
     "llm_d_epp_average_queue_size", [](Endpoints all) { return mean(all, waiting); }},
    {"pickd_pool_waiting_deviation", "Standard deviation of it.", "llm_d_epp_std_dev_queue_size",
     [](Endpoints all) { return deviation(all, waiting); }},
    {"pickd_pool_running_mean", "Mean of the requests that run in an engine.",
     "llm_d_epp_average_running_requests", [](Endpoints all) { return mean(all, running); }},
    {"pickd_pool_running_deviation", "Standard deviation of it.",
     "llm_d_epp_std_dev_running_requests", [](Endpoints all) { return deviation(all, running); }},
};

constexpr ModelMetric kModel[] = {
    {"pickd_latency_model_samples", "Pairs of a predicted and a measured time.",
     [](const ModelFacts& model) { return number(model.samples); }},
    {"pickd_latency_model_error_ratio",
     "Mean of |predicted - measured| / measured, lately.",
     [](const ModelFacts& model) { return model.error; }},
    {"pickd_latency_model_bias_ratio", "Mean of predicted - measured over mean measured, lately.",
     [](const ModelFacts& model) { return model.bias; }},
    {"pickd_latency_model_coverage_ratio",
     "Share of outcomes at or below the predicted percentile (latency.percentile), lately.",
     [](const ModelFacts& model) { return model.coverage; }},
    {"pickd_latency_model_ready", "1: better than saying the mean each time.",
     [](const ModelFacts& model) { return model.ready ? 1.0 : 0.0; }},
    {"pickd_latency_model_drifting", "1: the error of late is far above that of before.",
     [](const ModelFacts& model) { return model.drifting ? 1.0 : 0.0; }},
};

constexpr HistogramMetric kHistograms[] = {
    // name, help, EPP's, value
    {"pickd_pick_duration_seconds",
     "From a pick read to its answer published, in the worker; of the first pick of each turn of "
     "a channel, so the count is not that of picks.",
     "llm_d_epp_scheduler_e2e_duration_seconds",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.pick_seconds; }},
    {"pickd_match_ratio",
     "Share of the prefix blocks asked for that the picked endpoint was assumed to hold.",
     "llm_d_epp_prefix_indexer_hit_ratio",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.match_share; }},
    {"pickd_ttft_seconds",
     "Measured time to the first token, of streamed requests that were predicted and learned from.",
     "llm_d_epp_request_ttft_seconds",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.ttft; }},
    {"pickd_predicted_ttft_seconds", "What was predicted for these at the pick.",
     "llm_d_epp_request_predicted_ttft_seconds",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.predicted_ttft; }},
    {"pickd_ttft_prediction_ratio", "Predicted over measured time to the first token; 1 is right.",
     "", [](const Facts& facts) -> const base::HistogramCounts& { return facts.ttft_ratio; }},
    {"pickd_itl_seconds", "Measured mean time between tokens, of such requests.",
     "llm_d_epp_request_streaming_itl_seconds",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.itl; }},
    {"pickd_predicted_itl_seconds", "What was predicted for these at the pick.",
     "llm_d_epp_request_predicted_tpot_seconds",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.predicted_itl; }},
    {"pickd_itl_prediction_ratio", "Predicted over measured time between tokens; 1 is right.", "",
     [](const Facts& facts) -> const base::HistogramCounts& { return facts.itl_ratio; }},
};
// clang-format on

}  // namespace

std::span<const PlainMetric> plain_metrics() { return kPlain; }
std::span<const EndpointMetric> endpoint_metrics() { return kEndpoint; }
std::span<const PoolMetric> pool_metrics() { return kPool; }
std::span<const ModelMetric> model_metrics() { return kModel; }
std::span<const HistogramMetric> histogram_metrics() { return kHistograms; }

const char* epp_counter(abi::Counter counter) {
  switch (counter) {
    case abi::Counter::picks: return "llm_d_epp_scheduler_attempts_total{status=\"success\"}";
    case abi::Counter::picks_refused:
      return "llm_d_epp_scheduler_attempts_total{status=\"failure\"}";
    case abi::Counter::requests_failed: return "llm_d_epp_request_error_total";
    case abi::Counter::requests_done: return "llm_d_epp_request_total";
    case abi::Counter::output_tokens: return "llm_d_epp_request_output_tokens (its sum)";
    case abi::Counter::reported_prompt_tokens: return "llm_d_epp_request_input_tokens (its sum)";
    case abi::Counter::reported_cached_tokens: return "llm_d_epp_request_cached_tokens (its sum)";
    case abi::Counter::picks_split: return "llm_d_epp_disagg_decision_total";
    default: return "";
  }
}

}  // namespace pickd::admin

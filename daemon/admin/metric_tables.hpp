// The tables of what /metrics shows beside the counters of abi/counters.def: names, help texts, the
// metric of EPP that says the same, and where the value is. The page of metrics and docs/metrics.md
// are made from them; a new metric is a line in metric_tables.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "daemon/admin/facts.hpp"

namespace pickd::admin {

enum class MetricType : std::uint8_t { kCounter, kGauge };

// One number of the whole daemon.
struct PlainMetric {
  const char* name;
  const char* help;
  const char* epp;  // "": it has none
  double (*value)(const Facts& facts);
};
std::span<const PlainMetric> plain_metrics();

// One number of each endpoint, labelled with its name and pool.
struct EndpointMetric {
  const char* name;
  MetricType type;
  bool adds_up;  // those beyond admin.endpoints_max are summed as `other`, else left out
  const char* help;
  const char* epp;
  std::optional<double> (*value)(const EndpointFacts& endpoint);  // nothing: unknown, no line
};
std::span<const EndpointMetric> endpoint_metrics();

// One number of each pool, labelled with its name, of the endpoints in it.
struct PoolMetric {
  const char* name;
  const char* help;
  const char* epp;
  std::optional<double> (*value)(std::span<const EndpointFacts* const> endpoints);
};
std::span<const PoolMetric> pool_metrics();

// One number of each class of engines whose latency is learned, and of TTFT and ITL.
struct ModelMetric {
  const char* name;
  const char* help;
  double (*value)(const ModelFacts& model);
};
std::span<const ModelMetric> model_metrics();

struct HistogramMetric {
  const char* name;
  const char* help;
  const char* epp;
  const base::HistogramCounts& (*value)(const Facts& facts);
};
std::span<const HistogramMetric> histogram_metrics();

// Those with labels of their own.
inline constexpr char kReasonMetric[] = "pickd_picks_by_reason_total";
inline constexpr char kReasonHelp[] =
    "Picks answered with an endpoint, by why it won; dry runs left out. `pickctl explain` says "
    "more.";
inline constexpr char kStateMetric[] = "pickd_endpoint_state";
inline constexpr char kStateHelp[] = "1 for the state that the endpoint is in, else 0.";
inline constexpr char kInfoMetric[] = "pickd_build_info";
inline constexpr char kInfoHelp[] = "1, with the version and the profile in force.";
inline constexpr const char* kStates[] = {"ready", "suspect", "down", "draining", "starting"};

// The metric of EPP that says what a counter says; "": it has none.
const char* epp_counter(abi::Counter counter);

// docs/metrics.md.
std::string metrics_manual();

}  // namespace pickd::admin

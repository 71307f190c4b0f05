// metrics_manual: docs/metrics.md out of the tables, so that it cannot name what there is not.
#include "daemon/admin/metric_tables.hpp"
#include "daemon/admin/metrics_page.hpp"

namespace pickd::admin {

namespace {

constexpr const char* kIntroduction = R"(# Metrics

<!-- Made from abi/counters.def and the tables in daemon/admin; run ./dev manual. -->

What `/metrics` of the admin listener shows ([operating.md](operating.md) says how to switch it
on), in Prometheus' text format, or in OpenMetrics where a scraper asks for that. Counters are kept
in the state segment and go on over a restart that keeps it; histograms and what is counted for each
endpoint begin anew with the daemon.

The column EPP names the metric of the llm-d endpoint picker that says the same, where it has one;
its older names begin with `inference_objective_`, `inference_pool_` and `inference_extension_`.

Labels are few: `endpoint` and `pool` of an endpoint, of which `admin.endpoints_max` are told apart
(those beyond are summed as `other`, or left out where a sum says nothing), `reason`, `state`,
`class` of engines and `time` (`ttft` or `itl`). No label holds anything of a request.
)";

std::string row(const std::string& name, const std::string& type, const std::string& help,
                const std::string& epp) {
  std::string words = help;  // a bar would end its cell
  for (std::size_t at = 0; (at = words.find('|', at)) != std::string::npos; at += 2)
    words.insert(at, 1, '\\');
  return "| `" + name + "` | " + type + " | " + words + " | " +
         (epp.empty() ? "" : "`" + epp + "`") + " |\n";
}

std::string title(const std::string& text) {
  return "\n## " + text + "\n\n| metric | type | meaning | EPP |\n|---|---|---|---|\n";
}

}  // namespace

std::string metrics_manual() {
  std::string out = kIntroduction;
  out += title("Histograms");
  for (const HistogramMetric& metric : histogram_metrics())
    out += row(metric.name, "histogram", metric.help, metric.epp);
  out += title("Of each endpoint");
  for (const EndpointMetric& metric : endpoint_metrics()) {
    out += row(metric.name, metric.type == MetricType::kCounter ? "counter" : "gauge", metric.help,
               metric.epp);
  }
  out += row(kStateMetric, "gauge", kStateHelp, "");
  out += title("Of each pool");
  for (const PoolMetric& metric : pool_metrics())
    out += row(metric.name, "gauge", metric.help, metric.epp);
  out += title("Of what is learned of latencies");
  for (const ModelMetric& metric : model_metrics())
    out += row(metric.name, "gauge", metric.help, "");
  out += title("Of the daemon");
  out += row(kInfoMetric, "gauge", kInfoHelp, "llm_d_epp_info");
  for (const PlainMetric& metric : plain_metrics())
    out += row(metric.name, "gauge", metric.help, metric.epp);
  out += title("Counters");
  for (std::size_t at = 0; at < static_cast<std::size_t>(abi::Counter::kCount); ++at) {
    const abi::CounterInfo& info = abi::kCounterInfos[at];
    out += row(info.metric, "counter", info.help, epp_counter(static_cast<abi::Counter>(at)));
  }
  out += row(kReasonMetric, "counter", kReasonHelp, "");
  return out;
}

}  // namespace pickd::admin

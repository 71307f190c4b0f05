#include "daemon/admin/metrics_page.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <span>

#include "daemon/admin/metric_tables.hpp"
#include "daemon/admin/utf8.hpp"

namespace pickd::admin {

namespace {

constexpr std::string_view kTotal = "_total";

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

// OpenMetrics wants a point in the bounds of buckets.
std::string bound_text(double value) {
  std::string text = text_of(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(MetricsFormat format) : format_(format) {}

  void family(std::string_view name, const char* type, std::string_view help) {
    // In OpenMetrics a counter's family has the name without its suffix.
    std::string_view shown = name;
    if (format_ == MetricsFormat::kOpenMetrics && name.ends_with(kTotal))
      shown.remove_suffix(kTotal.size());
    out_ += "# HELP ";
    out_ += shown;
    out_ += ' ';
    escaped(help, format_ == MetricsFormat::kOpenMetrics);
    out_ += "\n# TYPE ";
    out_ += shown;
    out_ += ' ';
    out_ += type;
    out_ += '\n';
  }

  void sample(std::string_view name, const Labels& labels, std::string_view value) {
    out_ += name;
    for (std::size_t at = 0; at < labels.size(); ++at) {
      out_ += at == 0 ? '{' : ',';
      out_ += labels[at].first;
      out_ += "=\"";
      escaped(labels[at].second, true);
      out_ += '"';
    }
    if (!labels.empty()) out_ += '}';
    out_ += ' ';
    out_ += value;
    out_ += '\n';
  }
  void sample(std::string_view name, const Labels& labels, double value) {
    sample(name, labels, text_of(value));
  }

  std::string finish() {
    if (format_ == MetricsFormat::kOpenMetrics) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  void escaped(std::string_view text, bool quotes) {
    for (const char letter : text) {
      if (letter == '\\') {
        out_ += "\\\\";
      } else if (letter == '\n') {
        out_ += "\\n";
      } else if (letter == '"' && quotes) {
        out_ += "\\\"";
      } else {
        out_ += letter;
      }
    }
  }

  MetricsFormat format_;
  std::string out_;
};

const char* type_of(MetricType type) { return type == MetricType::kCounter ? "counter" : "gauge"; }

void put_counters(Writer& writer, const Facts& facts) {
  for (std::size_t at = 0; at < facts.counters.size(); ++at) {
    const abi::CounterInfo& info = abi::kCounterInfos[at];
    writer.family(info.metric, "counter", info.help);
    writer.sample(info.metric, {}, std::to_string(facts.counters[at]));
  }
  writer.family(kReasonMetric, "counter", kReasonHelp);
  for (const auto& [reason, count] : facts.picks_by_reason)
    writer.sample(kReasonMetric, {{"reason", reason}}, std::to_string(count));
}

void put_endpoints(Writer& writer, const Facts& facts, std::size_t endpoints_max) {
  const std::size_t apart = std::min(endpoints_max, facts.endpoints.size());
  std::vector<std::pair<std::string, std::string>> names;  // endpoint and pool
  for (std::size_t at = 0; at < apart; ++at)
    names.emplace_back(valid_utf8(facts.endpoints[at].name), valid_utf8(facts.endpoints[at].pool));
  for (const EndpointMetric& metric : endpoint_metrics()) {
    writer.family(metric.name, type_of(metric.type), metric.help);
    for (std::size_t at = 0; at < apart; ++at) {
      if (const auto value = metric.value(facts.endpoints[at]); value)
        writer.sample(metric.name, {{"endpoint", names[at].first}, {"pool", names[at].second}},
                      *value);
    }
    if (apart == facts.endpoints.size() || !metric.adds_up) continue;
    double sum = 0;
    for (std::size_t at = apart; at < facts.endpoints.size(); ++at)
      sum += metric.value(facts.endpoints[at]).value_or(0);
    writer.sample(metric.name, {{"endpoint", kOther}, {"pool", kOther}}, sum);
  }
  writer.family(kStateMetric, "gauge", kStateHelp);
  for (std::size_t at = 0; at < apart; ++at) {
    for (const char* state : kStates) {
      writer.sample(kStateMetric,
                    {{"endpoint", names[at].first}, {"pool", names[at].second}, {"state", state}},
                    facts.endpoints[at].state == state ? 1 : 0);
    }
  }
}

void put_pools(Writer& writer, const Facts& facts) {
  std::map<std::string, std::vector<const EndpointFacts*>> pools;
  for (const EndpointFacts& endpoint : facts.endpoints) {
    std::string name = valid_utf8(endpoint.pool);
    if (pools.size() >= kPoolsMax && !pools.contains(name)) name = kOther;
    pools[name].push_back(&endpoint);
  }
  for (const PoolMetric& metric : pool_metrics()) {
    writer.family(metric.name, "gauge", metric.help);
    for (const auto& [name, endpoints] : pools) {
      if (const auto value = metric.value(endpoints); value)
        writer.sample(metric.name, {{"pool", name}}, *value);
    }
  }
}

void put_models(Writer& writer, const Facts& facts) {
  for (const ModelMetric& metric : model_metrics()) {
    writer.family(metric.name, "gauge", metric.help);
    for (const ClassFacts& of : facts.classes) {
      const std::string name = valid_utf8(of.name);
      writer.sample(metric.name, {{"class", name}, {"time", "ttft"}}, metric.value(of.ttft));
      writer.sample(metric.name, {{"class", name}, {"time", "itl"}}, metric.value(of.itl));
    }
  }
}

void put_histogram(Writer& writer, const HistogramMetric& metric, const Facts& facts) {
  const base::HistogramCounts& counts = metric.value(facts);
  if (counts.shape == nullptr) return;
  writer.family(metric.name, "histogram", metric.help);
  const std::string name = metric.name;
  std::uint64_t below = 0;
  for (std::size_t at = 0; at < counts.buckets.size(); ++at) {
    below += counts.buckets[at];
    const std::string bound =
        at < counts.shape->bounds.size()
            ? bound_text(static_cast<double>(counts.shape->bounds[at]) * counts.shape->unit)
            : "+Inf";
    writer.sample(name + "_bucket", {{"le", bound}}, std::to_string(below));
  }
  writer.sample(name + "_sum", {}, static_cast<double>(counts.sum) * counts.shape->unit);
  writer.sample(name + "_count", {}, std::to_string(below));
}

// The quality of a media range, in thousandths; 1000 where none is given.
int quality_of(std::string_view range) {
  const std::size_t at = range.find(";q=");
  if (at == std::string_view::npos) return 1000;
  double quality = 0;
  const std::string_view text = range.substr(at + 3);
  if (std::from_chars(text.data(), text.data() + text.size(), quality).ec != std::errc()) return 0;
  return static_cast<int>(std::clamp(quality, 0.0, 1.0) * 1000);
}

}  // namespace

MetricsFormat format_for(std::string_view accept) {
  int open = 0;
  int plain = 0;
  std::string clean;
  for (const char letter : accept) {
    if (letter == ' ' || letter == '\t') continue;
    clean += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::string_view range = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), range.size() + 1));
    const std::string_view type = range.substr(0, range.find(';'));
    // Protobuf and version 0.0.1 of OpenMetrics are not spoken here.
    const bool old =
        range.find("version=0.0.1;") != std::string_view::npos || range.ends_with("version=0.0.1");
    if (type == "application/openmetrics-text" && !old) open = std::max(open, quality_of(range));
    if (type == "text/plain" || type == "text/*" || type == "*/*")
      plain = std::max(plain, quality_of(range));
  }
  return open != 0 && open >= plain ? MetricsFormat::kOpenMetrics : MetricsFormat::kPrometheus;
}

const char* content_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string metrics_page(const Facts& facts, MetricsFormat format, std::size_t endpoints_max) {
  Writer writer(format);
  writer.family(kInfoMetric, "gauge", kInfoHelp);
  const std::string profile = valid_utf8(facts.profile);
  writer.sample(kInfoMetric, {{"version", facts.version}, {"profile", profile}}, 1);
  put_counters(writer, facts);
  for (const PlainMetric& metric : plain_metrics()) {
    writer.family(metric.name, "gauge", metric.help);
    writer.sample(metric.name, {}, metric.value(facts));
  }
  put_endpoints(writer, facts, endpoints_max);
  put_pools(writer, facts);
  put_models(writer, facts);
  for (const HistogramMetric& metric : histogram_metrics()) put_histogram(writer, metric, facts);
  return writer.finish();
}

}  // namespace pickd::admin

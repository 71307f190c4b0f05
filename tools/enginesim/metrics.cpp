// The /metrics page. See metrics.hpp.
#include "tools/enginesim/metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace pickd::enginesim {

namespace {

constexpr std::array kTtftBounds = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                    0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                    20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
constexpr std::array kItlBounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                   0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array kTotalBounds = {0.3,  0.5,   0.8,   1.0,   1.5,   2.0,    2.5,
                                     5.0,  10.0,  15.0,  20.0,  30.0,  40.0,   50.0,
                                     60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};

// As Python's prometheus_client writes floats: shortest form, "1.0" for whole numbers.
std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string out(text, end);
  if (out.find_first_of(".en") == std::string::npos) out += ".0";
  return out;
}

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

void append_line(std::string& page, std::string_view name, std::string_view labels, double value) {
  page += name;
  if (!labels.empty()) {
    page += '{';
    page += labels;
    page += '}';
  }
  page += ' ';
  page += number(value);
  page += '\n';
}

void append_head(std::string& page, std::string_view name, std::string_view type,
                 std::string_view help) {
  page += "# HELP ";
  page += name;
  page += ' ';
  page += help;
  page += "\n# TYPE ";
  page += name;
  page += ' ';
  page += type;
  page += '\n';
}

std::string join_names(const std::vector<std::uint32_t>& adapters,
                       const std::vector<std::string>& names) {
  std::string out;
  for (const std::uint32_t adapter : adapters) {
    if (!out.empty()) out += ',';
    out += names[adapter];
  }
  return escaped(out);
}

}  // namespace

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::append_to(std::string& page, std::string_view name, std::string_view labels) const {
  const std::string family(name);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    append_line(page, family + "_bucket", std::string(labels) + ",le=\"" + bound + '"',
                static_cast<double>(below));
  }
  append_line(page, family + "_count", labels, static_cast<double>(below));
  append_line(page, family + "_sum", labels, sum_);
}

RequestHistograms::RequestHistograms() : ttft(kTtftBounds), itl(kItlBounds), total(kTotalBounds) {}

std::string metrics_page(const Engine& engine, const RequestHistograms& requests,
                         const std::vector<std::string>& names, double process_start_s,
                         double now_s) {
  std::string page;
  const std::string labels = "engine=\"0\",model_name=\"" + escaped(names[0]) + '"';
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help,
                       double value) {
    append_head(page, name, type, help);
    append_line(page, name, labels, value);
  };
  const auto histogram = [&](std::string_view name, std::string_view help,
                             const Histogram& values) {
    append_head(page, name, "histogram", help);
    values.append_to(page, name, labels);
  };
  const BlockCounts blocks = engine.blocks();
  const EngineOptions& options = engine.options();
  const EngineCounters& counters = engine.counters();
  const double use = static_cast<double>(blocks.used) / options.blocks;

  append_head(page, "process_start_time_seconds", "gauge",
              "Start time of the process since unix epoch in seconds.");
  append_line(page, "process_start_time_seconds", "", process_start_s);
  one("vllm:num_requests_running", "gauge", "Number of requests in model execution batches.",
      static_cast<double>(engine.running()));
  one("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.",
      static_cast<double>(engine.waiting()));
  one("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", use);
  one("vllm:gpu_cache_usage_perc", "gauge",
      "GPU KV-cache usage. 1 means 100 percent usage. DEPRECATED: Use vllm:kv_cache_usage_perc "
      "instead.",
      use);
  one("vllm:prefix_cache_queries_total", "counter",
      "Prefix cache queries, in terms of number of queried tokens.",
      static_cast<double>(counters.prefix_queries_tokens));
  one("vllm:prefix_cache_hits_total", "counter",
      "Prefix cache hits, in terms of number of cached tokens.",
      static_cast<double>(counters.prefix_hits_tokens));
  one("vllm:num_preemptions_total", "counter", "Cumulative number of preemption from the engine.",
      static_cast<double>(counters.preemptions));
  one("vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.",
      static_cast<double>(counters.prompt_tokens));
  one("vllm:generation_tokens_total", "counter", "Number of generation tokens processed.",
      static_cast<double>(counters.generation_tokens));

  append_head(page, "vllm:request_success_total", "counter",
              "Count of successfully processed requests.");
  const auto ended = [&](std::string_view reason, std::uint64_t count) {
    append_line(page, "vllm:request_success_total",
                labels + ",finished_reason=\"" + std::string(reason) + '"',
                static_cast<double>(count));
  };
  ended("stop", requests.stopped);
  ended("length", requests.cut);
  ended("abort", requests.aborted);

  histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.",
            requests.ttft);
  histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
            requests.itl);
  histogram("vllm:time_per_output_token_seconds",
            "Histogram of time per output token in seconds. DEPRECATED: Use "
            "vllm:inter_token_latency_seconds instead.",
            requests.itl);
  histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
            requests.total);

  append_head(page, "vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig");
  append_line(page, "vllm:cache_config_info",
              "block_size=\"" + std::to_string(options.block_tokens) +
                  "\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",num_cpu_"
                  "blocks=\"None\","
                  "num_gpu_blocks=\"" +
                  std::to_string(options.blocks) + '"',
              1);
  if (names.size() > 1) {
    append_head(page, "vllm:lora_requests_info", "gauge", "Running stats on lora requests.");
    append_line(page, "vllm:lora_requests_info",
                "max_lora=\"" + std::to_string(options.adapters_max) +
                    "\",running_lora_adapters=\"" + join_names(engine.running_adapters(), names) +
                    "\",waiting_lora_adapters=\"" + join_names(engine.waiting_adapters(), names) +
                    '"',
                now_s);
  }
  return page;
}

}  // namespace pickd::enginesim

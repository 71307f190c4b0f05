// pickd-bench metrics: how fast metrics pages become facts, for pages in the shape of several
// engines, beside a memchr over the same bytes, taken in turns in one run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "daemon/scrape/page_reader.hpp"
#include "tools/bench/subcommands.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

namespace {

struct MetricsOptions {
  std::uint32_t rounds = 15;
  std::uint64_t bytes = 32 << 20;  // of a page, again and again, a round
  std::size_t piece_bytes = 16 << 10;
  std::vector<std::string> files;
  bool json = false;
};

struct Page {
  std::string name;
  std::string text;
  tools::Samples read_gbps;
  tools::Samples probe_gbps;
};

class PageMaker {
 public:
  explicit PageMaker(std::string labels) : labels_(std::move(labels)) {}

  void gauge(const std::string& name, const std::string& value, const std::string& labels = {}) {
    head(name, "gauge");
    text_ += name + "{" + (labels.empty() ? labels_ : labels) + "} " + value + "\n";
  }
  void histogram(const std::string& name, int buckets) {
    head(name, "histogram");
    double bound = 0.001;
    std::uint64_t below = 0;
    for (int at = 0; at < buckets; ++at, bound *= 2) {
      below += random_.below(1000);
      text_ += name + "_bucket{" + labels_ + ",le=\"" + std::to_string(bound) + "\"} " +
               std::to_string(below) + ".0\n";
    }
    text_ += name + "_bucket{" + labels_ + ",le=\"+Inf\"} " + std::to_string(below) + ".0\n";
    text_ += name + "_count{" + labels_ + "} " + std::to_string(below) + ".0\n";
    text_ += name + "_sum{" + labels_ + "} " + std::to_string(below) + ".4382910000001\n";
  }
  const std::string& text() const { return text_; }

 private:
  void head(const std::string& name, const char* type) {
    text_ += "# HELP " + name + " What this metric counts, in a sentence of some length.\n";
    text_ += "# TYPE " + name + " " + type + "\n";
  }

  std::string labels_;
  std::string text_;
  base::Random random_{1};
};

std::string vllm_page(int ranks, int histograms) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string engine = std::to_string(rank);
    PageMaker page("engine=\"" + engine + R"(",model_name="meta-llama/Llama-3.1-70B-Instruct")");
    page.gauge("vllm:num_requests_running", "37.0");
    page.gauge("vllm:num_requests_waiting", "12.0");
    page.gauge("vllm:kv_cache_usage_perc", "0.4532161950113");
    page.gauge("vllm:prompt_tokens_total", "8.128902e+06");
    page.gauge("vllm:generation_tokens_total", "7.557572e+06");
    page.gauge("vllm:cache_config_info", "1.0",
               R"(block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine=")" +
                   engine + R"(",num_cpu_blocks="None",num_gpu_blocks="27468")");
    for (int at = 0; at < histograms; ++at)
      page.histogram("vllm:request_phase_" + std::to_string(at) + "_time_seconds", 20);
    text += page.text();
  }
  return text;
}

std::string sglang_page() {
  PageMaker page(
      R"(engine_type="unified",model_name="meta-llama/Llama-3.1-8B",pp_rank="0",tp_rank="0")");
  page.gauge("sglang:num_running_reqs", "162.0");
  page.gauge("sglang:num_queue_reqs", "2826.0");
  page.gauge("sglang:token_usage", "0.28");
  page.gauge("sglang:gen_throughput", "86.50814177726902");
  page.gauge("sglang:cache_config_info", "1.0", R"(page_size="64",num_pages="6911")");
  for (int at = 0; at < 8; ++at)
    page.histogram("sglang:phase_" + std::to_string(at) + "_seconds", 24);
  return page.text();
}

std::string triton_page() {
  std::string text;
  for (int model = 0; model < 24; ++model) {
    PageMaker page("model=\"model_" + std::to_string(model) + "\",version=\"1\"");
    for (const char* name : {"nv_inference_request_success", "nv_inference_request_failure",
                             "nv_inference_count", "nv_inference_queue_duration_us"}) {
      page.gauge(name, std::to_string(1204 + model));
    }
    text += page.text();
  }
  PageMaker page("");
  for (const char* type : {"waiting", "context", "scheduled", "max", "active"}) {
    page.gauge("nv_trt_llm_request_metrics", "17",
               std::string(R"(model="tensorrt_llm",request_type=")") + type + R"(",version="1")");
  }
  return text + page.text();
}

std::string huge_label_page() {
  std::string dump;
  while (dump.size() < 375'000) dump += R"({'k': [1, 2], \"q\": \\, } )";
  PageMaker page("engine=\"0\",model_name=\"m\"");
  page.gauge("vllm:vllm_config_info", "1.0", "compilation_config=\"" + dump + "\",engine=\"0\"");
  page.gauge("vllm:num_requests_running", "2.0");
  page.gauge("vllm:num_requests_waiting", "3.0");
  return page.text();
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of this thread alone: other work on the machine is not the reader's.
std::uint64_t own_ns() { return base::clock_ns(CLOCK_THREAD_CPUTIME_ID); }

double gbps(std::uint64_t bytes, std::uint64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

void read_round(const MetricsOptions& options, scrape::PageReader& reader, Page& page) {
  const std::uint64_t times = options.bytes / page.text.size() + 1;
  const std::uint64_t bytes = times * page.text.size();
  std::uint64_t from_ns = own_ns();
  for (std::uint64_t time = 0; time < times; ++time) {
    reader.begin();
    for (std::size_t at = 0; at < page.text.size(); at += options.piece_bytes)
      reader.feed(std::string_view(page.text).substr(at, options.piece_bytes));
    const scrape::PageFacts facts = reader.finish();
    if (!facts.refused.empty() || facts.bad_lines != 0)
      throw std::runtime_error(page.name + ": this page is not read well");
  }
  page.read_gbps.add(gbps(bytes, own_ns() - from_ns));
  from_ns = own_ns();
  std::uint64_t lines = 0;
  for (std::uint64_t time = 0; time < times; ++time) {
    const char* at = page.text.data();
    const char* end = at + page.text.size();
    while (at != end) {
      const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      if (newline == nullptr) break;
      at = static_cast<const char*>(newline) + 1;
      ++lines;
    }
  }
  if (lines == 0) throw std::runtime_error(page.name + ": a page without lines");
  page.probe_gbps.add(gbps(bytes, own_ns() - from_ns));
}

void print(const MetricsOptions& options, std::vector<Page>& pages) {
  nlohmann::ordered_json out;
  if (!options.json)
    std::printf("%-28s %9s %12s %14s %7s\n", "page", "bytes", "read GB/s", "memchr GB/s", "ratio");
  for (Page& page : pages) {
    const double read = page.read_gbps.percentile(0.5);
    const double probe = page.probe_gbps.percentile(0.5);
    if (options.json) {
      out.push_back({{"page", page.name},
                     {"bytes", page.text.size()},
                     {"read_gbps", read},
                     {"memchr_gbps", probe}});
    } else {
      std::printf("%-28s %9zu %12.2f %14.2f %7.2f\n", page.name.c_str(), page.text.size(), read,
                  probe, read / probe);
    }
  }
  if (options.json) std::printf("%s\n", out.dump().c_str());
}

void run_metrics(const MetricsOptions& options) {
  std::vector<Page> pages;
  const auto add = [&pages](std::string name, std::string text) {
    pages.push_back({std::move(name), std::move(text), {}, {}});
  };
  add("vllm, 6 kB", vllm_page(1, 2));
  add("vllm, 12 histograms", vllm_page(1, 12));
  add("vllm, 8 ranks", vllm_page(8, 12));
  add("sglang", sglang_page());
  add("triton", triton_page());
  add("a label of 375 kB", huge_label_page());
  for (const std::string& file : options.files) add(file, contents(file));
  const scrape::MetricSpecs specs;
  scrape::PageReader reader(specs);
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (Page& page : pages) read_round(options, reader, page);
  }
  print(options, pages);
}

}  // namespace

void add_metrics(CLI::App& app) {
  auto options = std::make_shared<MetricsOptions>();
  app.add_option("--rounds", options->rounds, "Rounds; medians are printed")
      ->check(CLI::Range(1U, 10'000U));
  app.add_option("--bytes", options->bytes, "Bytes a page and round")
      ->check(CLI::Range(1UL, 1UL << 34));
  app.add_option("--piece-bytes", options->piece_bytes, "Bytes that the reader gets at once")
      ->check(CLI::Range(1UL, 1UL << 30));
  app.add_option("--page", options->files, "Further pages, from files");
  app.add_flag("--json", options->json, "Print JSON");
  app.callback([options] { run_metrics(*options); });
}

}  // namespace pickd::bench

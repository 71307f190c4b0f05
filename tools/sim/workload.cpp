#include "tools/sim/workload.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <fstream>
#include <list>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "tools/bench/trace.hpp"

namespace pickd::sim {

namespace {

constexpr double kGeneratorSeconds = 600;
// Of a trace: idle time is simulated too.
constexpr double kDaysMax = 31;

bool ends_with(const std::string& text, std::string_view tail) {
  return text.size() >= tail.size() &&
         text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

// Seconds of an Azure stamp: "2023-11-16 18:17:03.9799600" or a plain number of seconds.
double azure_seconds(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  double second = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%u%*c%d:%d:%lf", &year, &month, &day, &hour, &minute,
                  &second) == 6) {
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                           std::chrono::day(day)};
    if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        !(second >= 0 && second < 61)) {
      throw std::runtime_error("no such time: " + text);
    }
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    return static_cast<double>(days) * 86'400 + hour * 3600.0 + minute * 60.0 + second;
  }
  std::size_t used = 0;
  const double seconds = std::stod(text, &used);
  if (used != text.size() || !std::isfinite(seconds)) throw std::runtime_error("no time: " + text);
  return seconds;
}

std::uint32_t azure_tokens(const std::string& text) {
  std::size_t used = 0;
  const double tokens = std::stod(text, &used);
  if (!(tokens >= 0 && tokens <= bench::kTraceTokensMax))
    throw std::runtime_error("no count of tokens: " + text);
  return std::max(1U, static_cast<std::uint32_t>(tokens));
}

bool is_azure_header(std::string line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  std::transform(line.begin(), line.end(), line.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return line == "timestamp,contexttokens,generatedtokens";
}

// The Azure LLM inference traces: TIMESTAMP,ContextTokens,GeneratedTokens. They tell no prompt, so
// no block is shared.
std::vector<SimRequest> read_azure(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<SimRequest> requests;
  std::string line;
  std::uint64_t next_block = 1;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (number == 1 && !is_azure_header(line)) {
      throw std::runtime_error(path + ":1: the columns are to be " +
                               "TIMESTAMP,ContextTokens,GeneratedTokens, not " + line);
    }
    if (number == 1 || line.empty()) continue;
    std::istringstream fields(line);
    std::string stamp;
    std::string prompt;
    std::string output;
    try {
      if (!std::getline(fields, stamp, ',') || !std::getline(fields, prompt, ',') ||
          !std::getline(fields, output, ',')) {
        throw std::runtime_error("too few fields");
      }
      SimRequest request;
      request.arrival_s = azure_seconds(stamp);
      request.prompt_tokens = azure_tokens(prompt);
      request.output_tokens = azure_tokens(output);
      for (std::uint32_t at = 0; at < request.prompt_tokens; at += kBlockTokens)
        request.blocks.push_back(next_block++);
      requests.push_back(std::move(request));
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ":" + std::to_string(number) +
                               ": not TIMESTAMP,ContextTokens,GeneratedTokens: " + error.what());
    }
  }
  return requests;
}

std::vector<SimRequest> read_mooncake(const std::string& path) {
  std::vector<SimRequest> requests;
  bench::Trace trace = bench::read_trace(path);
  for (bench::TraceRequest& traced : trace.requests) {
    SimRequest request;
    request.arrival_s = traced.arrival_s;
    request.prompt_tokens = std::max<std::uint32_t>(1, traced.input_tokens);
    request.output_tokens = std::max<std::uint32_t>(1, traced.output_tokens);
    request.blocks = std::move(traced.block_ids);
    for (std::uint64_t& block : request.blocks) ++block;  // 0 is no block
    requests.push_back(std::move(request));
  }
  return requests;
}

const GeneratorInfo* find_generator(std::string_view name) {
  for (const GeneratorInfo& generator : generators()) {
    if (generator.name == name) return &generator;
  }
  return nullptr;
}

std::string stem_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

}  // namespace

double bound_hit_rate(const std::vector<SimRequest>& requests, std::uint64_t capacity_blocks) {
  std::list<std::uint64_t> by_age;  // newest first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> cached;
  std::uint64_t hits = 0;
  std::uint64_t tokens = 0;
  for (const SimRequest& request : requests) {
    tokens += request.prompt_tokens;
    std::size_t matched = 0;
    while (matched < request.blocks.size() && cached.contains(request.blocks[matched])) ++matched;
    hits += std::min<std::uint64_t>(matched * kBlockTokens, request.prompt_tokens);
    // Tail first, so that of one chain the head is the newest.
    for (auto block = request.blocks.rbegin(); block != request.blocks.rend(); ++block) {
      if (const auto at = cached.find(*block); at != cached.end()) by_age.erase(at->second);
      by_age.push_front(*block);
      cached[*block] = by_age.begin();
    }
    while (capacity_blocks != 0 && cached.size() > capacity_blocks) {
      cached.erase(by_age.back());
      by_age.pop_back();
    }
  }
  return tokens == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(tokens);
}

double bound_ttft_mean_s(const std::vector<SimRequest>& requests, const enginesim::StepRates& rates,
                         std::uint32_t batched_tokens_max) {
  std::unordered_set<std::uint64_t> cached;
  double sum_s = 0;
  for (const SimRequest& request : requests) {
    // Only whole blocks are shared, and the last token is always computed.
    const std::size_t sharable =
        std::min<std::size_t>(request.blocks.size(), (request.prompt_tokens - 1) / kBlockTokens);
    std::size_t matched = 0;
    while (matched < sharable && cached.contains(request.blocks[matched])) ++matched;
    cached.insert(request.blocks.begin(), request.blocks.end());
    const double prompt = request.prompt_tokens;
    const double computed = prompt - static_cast<double>(matched * kBlockTokens);
    sum_s += rates.step_s * std::ceil(computed / batched_tokens_max) + rates.prefill_s * computed +
             rates.attention_s * computed * (prompt - computed / 2);
  }
  return requests.empty() ? 0 : sum_s / static_cast<double>(requests.size());
}

Workload make_workload(const WorkloadOptions& options) {
  Workload workload;
  if (const GeneratorInfo* generator = find_generator(options.name); generator != nullptr) {
    const double seconds = options.seconds > 0 ? options.seconds : kGeneratorSeconds;
    const double rate = options.rate_per_s > 0 ? options.rate_per_s
                                               : generator->rate_per_endpoint_s * options.endpoints;
    workload = generator->make(options.seed, seconds, rate);
    workload.name = options.name;
  } else {
    const bool file = options.name.find('/') != std::string::npos ||
                      ends_with(options.name, ".jsonl") || ends_with(options.name, ".csv");
    if (!file) {
      std::string known;
      for (const GeneratorInfo& each : generators())
        known += std::string(" ") + std::string(each.name);
      throw std::runtime_error("no workload \"" + options.name +
                               "\"; a file (.jsonl of Mooncake, .csv of Azure) or one of:" + known);
    }
    workload.requests =
        ends_with(options.name, ".csv") ? read_azure(options.name) : read_mooncake(options.name);
    workload.name = stem_of(options.name);
  }
  std::vector<SimRequest>& requests = workload.requests;
  if (requests.empty()) throw std::runtime_error(options.name + ": holds no request");
  std::stable_sort(requests.begin(), requests.end(), [](const SimRequest& a, const SimRequest& b) {
    return a.arrival_s < b.arrival_s;
  });
  const double first_s = requests.front().arrival_s;
  for (SimRequest& request : requests) request.arrival_s -= first_s;
  if (options.seconds > 0) {
    std::erase_if(requests,
                  [&](const SimRequest& request) { return request.arrival_s > options.seconds; });
  }
  if (requests.back().arrival_s > kDaysMax * 86'400) {
    throw std::runtime_error(
        options.name + ": its last request comes " +
        std::to_string(requests.back().arrival_s / 86'400) + " days after the first, at most " +
        std::to_string(static_cast<int>(kDaysMax)) + " are simulated; --seconds cuts it");
  }
  for (SimRequest& request : requests) request.arrival_s /= options.speed;
  workload.bound_hit_rate = bound_hit_rate(requests, 0);
  return workload;
}

}  // namespace pickd::sim

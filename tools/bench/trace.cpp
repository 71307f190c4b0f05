#include "tools/bench/trace.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>

#include "daemon/base/random.hpp"

namespace pickd::bench {

namespace {

// What comes after the last group of stamps when there is no next one to spread it up to.
constexpr double kLastGroupSpanS = 1.0;

void spread_arrivals(std::vector<TraceRequest>& requests) {
  for (std::size_t from = 0; from < requests.size();) {
    std::size_t to = from;
    while (to < requests.size() && requests[to].arrival_s == requests[from].arrival_s) ++to;
    const double span =
        to < requests.size() ? requests[to].arrival_s - requests[from].arrival_s : kLastGroupSpanS;
    const double first = requests[from].arrival_s;
    for (std::size_t at = from; at < to; ++at) {
      requests[at].arrival_s =
          first + span * static_cast<double>(at - from) / static_cast<double>(to - from);
    }
    from = to;
  }
}

// A count of tokens: a number below 0 must not become a huge one.
std::uint32_t tokens_of(const nlohmann::json& object, const char* key) {
  const double value = object.at(key).get<double>();
  if (!(value >= 0 && value <= kTraceTokensMax)) {
    throw std::out_of_range(std::string(key) + " is to be 0 to " + std::to_string(kTraceTokensMax));
  }
  return static_cast<std::uint32_t>(value);
}

double bound_of(const Trace& trace) {
  std::unordered_set<std::uint64_t> cached;
  std::uint64_t hits = 0;
  for (const TraceRequest& request : trace.requests) {
    std::size_t matched = 0;
    while (matched < request.block_ids.size() && cached.contains(request.block_ids[matched]))
      ++matched;
    hits += std::min<std::uint64_t>(matched * kTraceBlockTokens, request.input_tokens);
    cached.insert(request.block_ids.begin(), request.block_ids.end());
  }
  return trace.input_tokens == 0
             ? 0
             : static_cast<double>(hits) / static_cast<double>(trace.input_tokens);
}

}  // namespace

Trace read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  Trace trace;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      const auto object = nlohmann::json::parse(line);
      TraceRequest request;
      request.arrival_s = object.at("timestamp").get<double>() / 1000;
      if (!std::isfinite(request.arrival_s)) throw std::out_of_range("timestamp is no number");
      request.input_tokens = tokens_of(object, "input_length");
      request.output_tokens = tokens_of(object, "output_length");
      request.block_ids = object.at("hash_ids").get<std::vector<std::uint64_t>>();
      trace.input_tokens += request.input_tokens;
      trace.requests.push_back(std::move(request));
    } catch (const std::exception& error) {
      throw std::runtime_error(
          path + ":" + std::to_string(number) +
          ": not a request (timestamp, input_length, output_length, hash_ids): " + error.what());
    }
  }
  if (trace.requests.empty()) throw std::runtime_error(path + ": holds no request");
  std::stable_sort(
      trace.requests.begin(), trace.requests.end(),
      [](const TraceRequest& a, const TraceRequest& b) { return a.arrival_s < b.arrival_s; });
  spread_arrivals(trace.requests);
  trace.bound_hit_rate = bound_of(trace);
  return trace;
}

void make_prompt(const TraceRequest& request, std::vector<std::uint32_t>& token_ids) {
  token_ids.resize(request.input_tokens);
  for (std::size_t block = 0; block * kTraceBlockTokens < token_ids.size(); ++block) {
    const std::uint64_t id =
        block < request.block_ids.size() ? request.block_ids[block] : ~std::uint64_t{0} - block;
    base::Random random(id * 0x9E3779B97F4A7C15ULL + 1);
    const std::size_t from = block * kTraceBlockTokens;
    const std::size_t to = std::min<std::size_t>(from + kTraceBlockTokens, token_ids.size());
    for (std::size_t at = from; at < to; ++at)
      token_ids[at] = static_cast<std::uint32_t>(random.next());
  }
}

}  // namespace pickd::bench

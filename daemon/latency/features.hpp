// What a latency depends on: the features of the two models, their scales and what is believed of
// them before anything was measured.
//
// Times in seconds, lengths in tokens. The scales bring each feature near 1, so that one ridge
// suits all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pickd::latency {

// The attention work of a prompt of `prompt` tokens of which `uncached` are computed: each of them
// looks at all before it.
constexpr double attention_work(double uncached, double prompt) {
  return uncached * (prompt - uncached / 2);
}

// After so long a first token that was predicted at `ttft_s` is overdue: few come later, and most
// that are not there were not reported.
constexpr double first_token_due_s(double ttft_s) { return 2 * ttft_s + .5; }

// What stands before a request at an endpoint, and what runs there.
struct EndpointLoad {
  float queued_tokens = 0;  // uncached tokens of requests without a first token
  float queued_work = 0;    // their attention work
  float queued_requests = 0;
  float running = 0;    // requests in flight
  float kv_tokens = 0;  // of all in flight: prompt + half of the expected answer
  float queued_kv_tokens = 0;
  float head_tokens = 0;  // uncached tokens of the oldest request without a first token
  float head_work = 0;    // its attention work
  float head_age_s = 0;   // since the last first token, or since somebody began to wait

  constexpr float decoding() const {
    return running > queued_requests ? running - queued_requests : 0;
  }
  constexpr float decoding_tokens() const {
    return kv_tokens > queued_kv_tokens ? kv_tokens - queued_kv_tokens : 0;
  }
};

// Of an EndpointLoad what a TTFT depends on: kept with a pick until its outcome is known.
struct QueueSeen {
  float tokens = 0;  // queued
  float work = 0;
  float decoding = 0;
  float decoding_tokens = 0;
};
constexpr QueueSeen queue_seen(const EndpointLoad& load) {
  return {load.queued_tokens, load.queued_work, load.decoding(), load.decoding_tokens()};
}

// The mean of the requests of a class: of others' requests only their number is told.
struct MeanRequest {
  float uncached_tokens = 0;
  float work = 0;  // attention work of these
  float kv_tokens = 0;
};

// Adds `waiting` and `running` requests that are not ours. They may wait in the engine with ours;
// who is the head of its queue stays as we know it.
constexpr void add_foreign(EndpointLoad& load, float waiting, float running,
                           const MeanRequest& mean) {
  load.queued_tokens += waiting * mean.uncached_tokens;
  load.queued_work += waiting * mean.work;
  load.queued_requests += waiting;
  load.queued_kv_tokens += waiting * mean.kv_tokens;
  load.running += waiting + running;
  load.kv_tokens += (waiting + running) * mean.kv_tokens;
}

// TTFT: 1, tokens queued, attention work queued, own uncached tokens, own attention work, sequences
// that decode, KV tokens they hold.
inline constexpr std::size_t kTtftFeatures = 7;
using TtftFeatures = std::array<double, kTtftFeatures>;
inline constexpr TtftFeatures kTtftScales = {1, 1e-4, 1e-8, 1e-4, 1e-8, 0.1, 1e-5};
inline constexpr TtftFeatures kTtftPrior = {.01, 1, .1, 1, .1, 0, 0};

// ITL: 1, mean sequences that decode, mean KV tokens they hold, prefill tokens for each output
// token of ours, prefill attention work for each.
inline constexpr std::size_t kItlFeatures = 5;
using ItlFeatures = std::array<double, kItlFeatures>;
inline constexpr ItlFeatures kItlScales = {1, 0.1, 1e-5, 1e-3, 1e-7};
inline constexpr ItlFeatures kItlPrior = {.01, 3e-4, .005, .1, .01};

constexpr TtftFeatures ttft_features(const QueueSeen& queue, double uncached, double prompt) {
  return {1,
          queue.tokens * kTtftScales[1],
          queue.work * kTtftScales[2],
          uncached * kTtftScales[3],
          attention_work(uncached, prompt) * kTtftScales[4],
          queue.decoding * kTtftScales[5],
          queue.decoding_tokens * kTtftScales[6]};
}

constexpr ItlFeatures itl_features(double sequences, double kv_tokens, double prefill_tokens,
                                   double prefill_work) {
  return {1, sequences * kItlScales[1], kv_tokens * kItlScales[2], prefill_tokens * kItlScales[3],
          prefill_work * kItlScales[4]};
}

template <std::size_t N>
constexpr double dot(const std::array<double, N>& a, const std::array<double, N>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace pickd::latency

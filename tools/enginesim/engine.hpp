// Engine: what an inference engine does with its requests, step by step: continuous batching with a
// token budget, chunked prefill, prefix caching, preemption of the newest. Does no I/O and reads no
// clock, so the HTTP server runs it in real time and a simulator in virtual time. It sees lengths
// and block keys, never text.
//
//   submit() ... begin_step(now) -> end of the step; wait until then; end_step() -> tokens; again
//
// Blocks are shareable as soon as they are scheduled, as in vLLM, not when their request ends.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemon/base/random.hpp"
#include "tools/enginesim/block_cache.hpp"

namespace pickd::enginesim {

// A step takes
//   step_s + prefill_s * P + attention_s * sum of u (e - u/2)
//          + decode_sequence_s * R + decode_token_s * K
// P = prompt tokens computed in it, u = those of one sequence, which end at position e; R =
// sequences that decode, K = KV tokens they hold.
struct StepRates {
  double step_s = 0.010;
  double prefill_s = 1e-4;
  double attention_s = 1e-9;
  double decode_sequence_s = 3e-5;
  double decode_token_s = 5e-8;
  double noise = 0;        // standard deviation of the logarithm of a step's duration, 0..1
  double time_factor = 1;  // every step is shorter by this factor; above 0
};

struct EngineOptions {
  std::uint32_t blocks = 8192;              // KV cache in blocks, at least 1
  std::uint32_t block_tokens = 16;          // at least 1
  std::uint32_t sequences_max = 256;        // in one step, at least 1
  std::uint32_t batched_tokens_max = 2048;  // computed in one step, at least 1
  std::uint32_t adapters_max = 1;           // different LoRA adapters that run at once, at least 1
  std::uint64_t seed = 1;                   // of the noise
  StepRates rates;
};

struct Request {
  std::uint64_t id = 0;             // unique among the requests in the engine
  std::uint32_t prompt_tokens = 0;  // at least 1
  std::uint32_t output_tokens = 0;  // at least 1: when the answer ends
  std::uint32_t adapter = 0;        // LoRA adapter; 0 = none
  // Keys of the full blocks of prompt and answer, in order. May be shorter: blocks beyond are not
  // shared.
  std::vector<BlockKey> keys;
};

// One output token of one request, at the end of a step.
struct TokenEvent {
  std::uint64_t id = 0;
  std::uint32_t output_tokens = 0;  // so far, with this one: 1 = first
  std::uint32_t cached_tokens = 0;  // of the prompt, found in the cache when it was first scheduled
  bool finished = false;
};

struct EngineCounters {
  std::uint64_t prefix_queries_tokens = 0;  // prompt tokens looked up, once a request
  std::uint64_t prefix_hits_tokens = 0;     // of these, found
  std::uint64_t prompt_tokens = 0;          // of requests that got a first token
  std::uint64_t generation_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t steps = 0;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options);

  // The longest prompt plus answer, in tokens: one sequence must fit the cache alone.
  std::uint64_t sequence_tokens_max() const;

  // False when prompt and answer are longer than sequence_tokens_max() or one of them is empty.
  bool submit(Request request);

  // Removes a request and frees its blocks at once, within a step too. False: not here (any more).
  bool abort(std::uint64_t id);

  // Begins a step: decides what is computed and takes the blocks for it. Gives the time it ends, or
  // nothing when there is no work. Only between steps.
  std::optional<std::uint64_t> begin_step(std::uint64_t now_ns);

  // Ends the step and appends its tokens to `events`, in the order of the batch.
  void end_step(std::vector<TokenEvent>& events);

  bool in_step() const { return in_step_; }
  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  BlockCounts blocks() const { return cache_.counts(); }
  const EngineCounters& counters() const { return counters_; }
  const EngineOptions& options() const { return options_; }

  // Adapters of running and of waiting requests, sorted, each once.
  std::vector<std::uint32_t> running_adapters() const;
  std::vector<std::uint32_t> waiting_adapters() const;

  void forget_prefixes() { cache_.forget(); }

 private:
  struct Sequence {
    Request request;
    std::vector<BlockId> blocks;
    std::uint32_t generated = 0;
    std::uint32_t computed = 0;   // tokens whose KV is in `blocks`, at the end of the last step
    std::uint32_t scheduled = 0;  // tokens computed in this step
    std::uint32_t published = 0;  // leading blocks that were offered to others
    std::uint32_t cached = 0;     // prompt tokens found when first scheduled
    bool looked_up = false;
    bool is_running = false;

    std::uint32_t tokens() const { return request.prompt_tokens + generated; }
  };

  // What one step costs; see StepRates.
  struct Work {
    double prefill_tokens = 0;
    double attention = 0;
    double decoding = 0;
    double decoding_tokens = 0;
  };

  void schedule_running(std::uint32_t& budget, bool& preempted, Work& work);
  void admit_waiting(std::uint32_t& budget, Work& work);
  bool admit(Sequence& sequence, std::uint32_t budget, Work& work);
  bool may_load_adapter(std::uint32_t adapter) const;
  bool extend(Sequence& sequence, std::uint32_t tokens);
  void schedule(Sequence& sequence, std::uint32_t tokens, Work& work);
  void preempt_newest();
  void free_blocks(Sequence& sequence);
  std::uint64_t duration_ns(const Work& work);
  double normal();

  EngineOptions options_;
  BlockCache cache_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // oldest admission first
  std::deque<Sequence*> waiting_;
  EngineCounters counters_;
  base::Random random_;
  bool in_step_ = false;
};

}  // namespace pickd::enginesim

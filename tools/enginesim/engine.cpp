// The scheduler of one engine. See engine.hpp.
#include "tools/enginesim/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace pickd::enginesim {

Engine::Engine(const EngineOptions& options)
    : options_(options), cache_(options.blocks), random_(options.seed) {}

std::uint64_t Engine::sequence_tokens_max() const {
  return std::uint64_t{options_.blocks} * options_.block_tokens;
}

bool Engine::submit(Request request) {
  if (request.prompt_tokens == 0 || request.output_tokens == 0) return false;
  if (std::uint64_t{request.prompt_tokens} + request.output_tokens > sequence_tokens_max())
    return false;
  assert(!sequences_.contains(request.id));
  auto sequence = std::make_unique<Sequence>();
  sequence->request = std::move(request);
  waiting_.push_back(sequence.get());
  sequences_.emplace(sequence->request.id, std::move(sequence));
  return true;
}

bool Engine::abort(std::uint64_t id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return false;
  Sequence* sequence = found->second.get();
  if (sequence->is_running) {
    std::erase(running_, sequence);
  } else {
    std::erase(waiting_, sequence);
  }
  free_blocks(*sequence);
  sequences_.erase(found);
  return true;
}

std::optional<std::uint64_t> Engine::begin_step(std::uint64_t now_ns) {
  assert(!in_step_);
  if (sequences_.empty()) return std::nullopt;
  std::uint32_t budget = options_.batched_tokens_max;
  bool preempted = false;
  Work work;
  schedule_running(budget, preempted, work);
  // Whoever was just preempted must not come back in the step that had no room for it.
  if (!preempted) admit_waiting(budget, work);
  in_step_ = true;
  ++counters_.steps;
  return now_ns + duration_ns(work);
}

void Engine::end_step(std::vector<TokenEvent>& events) {
  assert(in_step_);
  in_step_ = false;
  std::erase_if(running_, [&](Sequence* sequence) {
    sequence->computed += sequence->scheduled;
    const bool produced = sequence->scheduled > 0 && sequence->computed == sequence->tokens();
    sequence->scheduled = 0;
    if (!produced) return false;
    if (sequence->generated == 0) counters_.prompt_tokens += sequence->request.prompt_tokens;
    ++sequence->generated;
    ++counters_.generation_tokens;
    const bool finished = sequence->generated >= sequence->request.output_tokens;
    events.push_back({sequence->request.id, sequence->generated, sequence->cached, finished});
    if (finished) {
      free_blocks(*sequence);
      sequences_.erase(sequence->request.id);
    }
    return finished;
  });
}

// Everybody who runs already goes before everybody who waits.
void Engine::schedule_running(std::uint32_t& budget, bool& preempted, Work& work) {
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    const std::uint32_t tokens = std::min(sequence.tokens() - sequence.computed, budget);
    bool fits;
    while (!(fits = extend(sequence, sequence.computed + tokens))) {
      const bool itself = running_.back() == &sequence;
      preempt_newest();
      preempted = true;
      if (itself) break;
    }
    if (!fits) break;
    schedule(sequence, tokens, work);
    budget -= tokens;
  }
}

void Engine::admit_waiting(std::uint32_t& budget, Work& work) {
  for (auto next = waiting_.begin(); next != waiting_.end() && budget > 0;) {
    if (running_.size() >= options_.sequences_max) return;
    Sequence& sequence = **next;
    if (!may_load_adapter(sequence.request.adapter)) {  // others may pass it meanwhile
      ++next;
      continue;
    }
    if (!admit(sequence, budget, work))
      return;  // nobody overtakes for want of blocks: no starvation
    next = waiting_.erase(next);
    budget -= sequence.scheduled;
  }
}

bool Engine::admit(Sequence& sequence, std::uint32_t budget, Work& work) {
  const std::uint32_t block_tokens = options_.block_tokens;
  // The last token is always computed: its logits are what the first output token comes from.
  const std::uint32_t reusable =
      std::min<std::uint32_t>(static_cast<std::uint32_t>(sequence.request.keys.size()),
                              (sequence.tokens() - 1) / block_tokens);
  std::span<const BlockKey> keys(sequence.request.keys.data(), reusable);
  const auto hits = static_cast<std::uint32_t>(cache_.match(keys));
  keys = keys.first(hits);
  const std::uint32_t found = hits * block_tokens;
  const std::uint32_t tokens = std::min(sequence.tokens() - found, budget);
  const std::uint32_t blocks = (found + tokens + block_tokens - 1) / block_tokens - hits;
  if (blocks + cache_.count_unreferenced(keys) > cache_.available()) return false;

  for (const BlockKey key : keys) sequence.blocks.push_back(cache_.pin(key));
  sequence.computed = found;
  sequence.published = hits;
  if (!sequence.looked_up) {
    sequence.looked_up = true;
    sequence.cached = found;
    counters_.prefix_queries_tokens += sequence.request.prompt_tokens;
    counters_.prefix_hits_tokens += found;
  }
  [[maybe_unused]] const bool fits = extend(sequence, found + tokens);
  assert(fits);
  sequence.is_running = true;
  running_.push_back(&sequence);
  schedule(sequence, tokens, work);
  return true;
}

bool Engine::may_load_adapter(std::uint32_t adapter) const {
  if (adapter == 0) return true;
  const std::vector<std::uint32_t> loaded = running_adapters();
  return loaded.size() < options_.adapters_max || std::ranges::binary_search(loaded, adapter);
}

// Gives the sequence blocks for its first `tokens` tokens; false when there are not enough, and
// then it keeps those it got.
bool Engine::extend(Sequence& sequence, std::uint32_t tokens) {
  const std::size_t wanted = (tokens + options_.block_tokens - 1) / options_.block_tokens;
  while (sequence.blocks.size() < wanted) {
    const std::optional<BlockId> block = cache_.allocate();
    if (!block) return false;
    sequence.blocks.push_back(*block);
  }
  return true;
}

void Engine::schedule(Sequence& sequence, std::uint32_t tokens, Work& work) {
  sequence.scheduled = tokens;
  const std::uint32_t end = sequence.computed + tokens;
  if (tokens == 1 && sequence.generated > 0 && end == sequence.tokens()) {
    work.decoding += 1;
    work.decoding_tokens += end;
  } else {
    work.prefill_tokens += tokens;
    work.attention += static_cast<double>(tokens) * (end - tokens / 2.0);
  }
  const std::size_t full =
      std::min<std::size_t>(end / options_.block_tokens, sequence.request.keys.size());
  for (; sequence.published < full; ++sequence.published) {
    cache_.publish(sequence.blocks[sequence.published], sequence.request.keys[sequence.published]);
  }
}

void Engine::preempt_newest() {
  Sequence* victim = running_.back();
  running_.pop_back();
  free_blocks(*victim);
  victim->is_running = false;
  victim->computed = 0;
  victim->scheduled = 0;
  victim->published = 0;
  waiting_.push_front(victim);
  ++counters_.preemptions;
}

// Tail first, so that what others may share, the head, is evicted last.
void Engine::free_blocks(Sequence& sequence) {
  for (; !sequence.blocks.empty(); sequence.blocks.pop_back())
    cache_.release(sequence.blocks.back());
}

std::uint64_t Engine::duration_ns(const Work& work) {
  const StepRates& rates = options_.rates;
  double seconds = rates.step_s + rates.prefill_s * work.prefill_tokens +
                   rates.attention_s * work.attention + rates.decode_sequence_s * work.decoding +
                   rates.decode_token_s * work.decoding_tokens;
  if (rates.noise > 0) seconds *= std::exp(rates.noise * normal());
  return static_cast<std::uint64_t>(seconds / rates.time_factor * 1e9);
}

// Box and Muller.
double Engine::normal() {
  const auto uniform = [&] { return (static_cast<double>(random_.next() >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

namespace {

template <typename Sequences>
std::vector<std::uint32_t> adapters_of(const Sequences& sequences) {
  std::vector<std::uint32_t> adapters;
  for (const auto* sequence : sequences) {
    if (sequence->request.adapter != 0) adapters.push_back(sequence->request.adapter);
  }
  std::sort(adapters.begin(), adapters.end());
  adapters.erase(std::unique(adapters.begin(), adapters.end()), adapters.end());
  return adapters;
}

}  // namespace

std::vector<std::uint32_t> Engine::running_adapters() const { return adapters_of(running_); }
std::vector<std::uint32_t> Engine::waiting_adapters() const { return adapters_of(waiting_); }

}  // namespace pickd::enginesim

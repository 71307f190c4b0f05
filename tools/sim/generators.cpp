// Workload generators. Arrivals are a Poisson process unless said; lengths are log-normal.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "daemon/base/random.hpp"
#include "tools/sim/workload.hpp"

namespace pickd::sim {

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15ULL + 0x5EED) {}

  double uniform() { return (static_cast<double>(random_.next() >> 11) + .5) * 0x1p-53; }
  double gap(double rate) { return -std::log(uniform()) / rate; }
  std::uint64_t below(std::uint64_t bound) { return random_.next() % bound; }
  // A length with this median; about a sixth of them above median * exp(spread).
  std::uint32_t length(double median, double spread, double most) {
    const double normal =
        std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
    return static_cast<std::uint32_t>(std::clamp(median * std::exp(spread * normal), 1.0, most));
  }

 private:
  base::Random random_;
};

// Blocks of a prompt that starts with `shared` and goes on with blocks of its own.
class Blocks {
 public:
  std::uint64_t fresh() { return next_++; }
  std::vector<std::uint64_t> chain(std::uint32_t tokens) {
    std::vector<std::uint64_t> blocks;
    extend(blocks, tokens);
    return blocks;
  }
  // Beginnings that conversations and the like share.
  std::vector<std::vector<std::uint64_t>> chains(std::size_t count, std::uint32_t tokens) {
    std::vector<std::vector<std::uint64_t>> made(count);
    for (std::vector<std::uint64_t>& each : made) each = chain(tokens);
    return made;
  }
  // Until the chain covers `tokens`.
  void extend(std::vector<std::uint64_t>& blocks, std::uint32_t tokens) {
    while (blocks.size() * kBlockTokens < tokens) blocks.push_back(fresh());
  }

 private:
  std::uint64_t next_ = 1;
};

SimRequest request_of(double at_s, std::uint32_t prompt, std::uint32_t output,
                      std::vector<std::uint64_t> blocks) {
  SimRequest request;
  request.arrival_s = at_s;
  request.prompt_tokens = prompt;
  request.output_tokens = output;
  request.blocks = std::move(blocks);
  return request;
}

// A conversation grows by what was said: the whole blocks of before, then new ones.
void grow(std::vector<std::uint64_t>& blocks, std::uint32_t* prompt, std::uint32_t more,
          Blocks& made) {
  blocks.resize(std::min<std::size_t>(blocks.size(), *prompt / kBlockTokens));
  *prompt += more;
  made.extend(blocks, *prompt);
}

Workload make_chat(std::uint64_t seed, double seconds, double rate) {
  Draw draw(seed);
  Blocks made;
  Workload workload;
  const auto systems = made.chains(20, 2048);
  constexpr double kTurnsMean = 4;
  for (double start = 0; start < seconds; start += draw.gap(rate / kTurnsMean)) {
    std::uint32_t prompt = 2048;
    std::vector<std::uint64_t> blocks = systems[draw.below(systems.size())];
    double at = start;
    std::uint32_t output = 0;
    do {
      grow(blocks, &prompt, output + draw.length(300, .8, 8000), made);
      output = draw.length(250, .7, 2000);
      workload.requests.push_back(request_of(at, prompt, output, blocks));
      at += 5 + draw.gap(1 / 25.0) + output * .02;  // reads, thinks, types
    } while (draw.uniform() > 1 / kTurnsMean && at < seconds);
  }
  return workload;
}

Workload make_agents(std::uint64_t seed, double seconds, double rate) {
  Draw draw(seed);
  Blocks made;
  Workload workload;
  const auto tools = made.chains(5, 8192);
  constexpr double kStepsMean = 12;
  for (double start = 0; start < seconds; start += draw.gap(rate / kStepsMean)) {
    std::uint32_t prompt = 8192;
    std::vector<std::uint64_t> blocks = tools[draw.below(tools.size())];
    double at = start;
    std::uint32_t output = draw.length(500, .5, 4000);
    do {
      grow(blocks, &prompt, output + draw.length(600, 1, 8000), made);
      output = draw.length(120, .6, 1500);
      workload.requests.push_back(request_of(at, prompt, output, blocks));
      at += .5 + draw.gap(1 / 2.0) + output * .02;  // a tool runs
    } while (draw.uniform() > 1 / kStepsMean && at < seconds && prompt < 100'000);
  }
  return workload;
}

// Documents in changing order: only what stands first can be shared.
Workload make_rag(std::uint64_t seed, double seconds, double rate) {
  Draw draw(seed);
  Blocks made;
  Workload workload;
  const std::vector<std::uint64_t> system = made.chain(1024);
  constexpr std::uint64_t kDocuments = 2000;
  for (double at = 0; at < seconds; at += draw.gap(rate)) {
    std::vector<std::uint64_t> blocks = system;
    std::uint64_t history = 0;
    for (int document = 0; document < 5; ++document) {
      // A few documents are asked for often: the smaller of two draws, twice.
      const std::uint64_t id = std::min(draw.below(kDocuments), draw.below(kDocuments));
      history = (history ^ (id + 1)) * 0xD6E8FEB86659FD93ULL;
      for (std::uint64_t block = 0; block < 2; ++block)
        blocks.push_back((1ULL << 62) | ((history + block) >> 2));
    }
    const std::uint32_t prompt =
        static_cast<std::uint32_t>(blocks.size()) * kBlockTokens + draw.length(60, .5, 400);
    made.extend(blocks, prompt);
    workload.requests.push_back(request_of(at, prompt, draw.length(200, .6, 1500), blocks));
  }
  return workload;
}

// A quarter of the requests share one prompt of 6,144 tokens.
Workload make_hot_prefix(std::uint64_t seed, double seconds, double rate) {
  Draw draw(seed);
  Blocks made;
  Workload workload;
  const std::vector<std::uint64_t> hot = made.chain(6144);
  for (double at = 0; at < seconds; at += draw.gap(rate)) {
    const bool shares = draw.uniform() < .25;
    std::vector<std::uint64_t> blocks = shares ? hot : std::vector<std::uint64_t>();
    const std::uint32_t prompt =
        (shares ? 6144U : 0U) + draw.length(shares ? 400 : 3000, .9, 30'000);
    made.extend(blocks, prompt);
    workload.requests.push_back(request_of(at, prompt, draw.length(200, .7, 2000), blocks));
  }
  return workload;
}

Workload make_unrelated(std::uint64_t seed, double seconds, double rate) {
  Draw draw(seed);
  Blocks made;
  Workload workload;
  for (double at = 0; at < seconds; at += draw.gap(rate)) {
    const std::uint32_t prompt = draw.length(3000, 1, 60'000);
    workload.requests.push_back(
        request_of(at, prompt, draw.length(200, .8, 2000), made.chain(prompt)));
  }
  return workload;
}

// Bursts of 200 requests with one prefix of 4,096 tokens each, all within half a second.
Workload make_bursts(std::uint64_t seed, double seconds, double rate) {
  constexpr int kBurst = 200;
  Draw draw(seed);
  Blocks made;
  Workload workload;
  for (double start = 0; start < seconds; start += kBurst / rate) {
    const std::vector<std::uint64_t> shared = made.chain(4096);
    for (int i = 0; i < kBurst; ++i) {
      std::vector<std::uint64_t> blocks = shared;
      const std::uint32_t prompt = 4096 + draw.length(300, .5, 2000);
      made.extend(blocks, prompt);
      workload.requests.push_back(
          request_of(start + .5 * draw.uniform(), prompt, draw.length(150, .6, 1000), blocks));
    }
  }
  return workload;
}

// Batches of reinforcement learning: 16 answers to each of 32 prompts, all at once.
Workload make_rl(std::uint64_t seed, double seconds, double rate) {
  constexpr int kPrompts = 32;
  constexpr int kAnswers = 16;
  Draw draw(seed);
  Blocks made;
  Workload workload;
  for (double start = 0; start < seconds; start += kPrompts * kAnswers / rate) {
    for (int i = 0; i < kPrompts; ++i) {
      const std::uint32_t prompt = draw.length(1500, .6, 8000);
      const std::vector<std::uint64_t> blocks = made.chain(prompt);
      for (int answer = 0; answer < kAnswers; ++answer) {
        workload.requests.push_back(
            request_of(start + .2 * draw.uniform(), prompt, draw.length(600, .7, 4000), blocks));
      }
    }
  }
  return workload;
}

// Three kinds of work that want different latencies: people who wait behind 20 shared prompts,
// questions on documents, and batches that nobody waits for.
Workload make_mixed_slo(std::uint64_t seed, double seconds, double rate) {
  Draw draw(seed);
  Blocks made;
  Workload workload;
  const auto systems = made.chains(20, 2048);
  for (double at = 0; at < seconds; at += draw.gap(rate)) {
    const double kind = draw.uniform();
    if (kind < .5) {
      std::vector<std::uint64_t> blocks = systems[draw.below(systems.size())];
      const std::uint32_t prompt = 2048 + draw.length(400, .8, 8000);
      made.extend(blocks, prompt);
      workload.requests.push_back(request_of(at, prompt, draw.length(200, .6, 1500), blocks));
      workload.requests.back().slo_ttft_s = .5;
      workload.requests.back().slo_itl_s = .03;
    } else if (kind < .8) {
      const std::uint32_t prompt = draw.length(5000, .7, 40'000);
      workload.requests.push_back(
          request_of(at, prompt, draw.length(250, .6, 1500), made.chain(prompt)));
      workload.requests.back().slo_ttft_s = 3;
      workload.requests.back().slo_itl_s = .06;
    } else {
      const std::uint32_t prompt = draw.length(8000, .8, 60'000);
      workload.requests.push_back(
          request_of(at, prompt, draw.length(500, .7, 3000), made.chain(prompt)));
      workload.requests.back().slo_ttft_s = 30;
      workload.requests.back().slo_itl_s = .2;
    }
  }
  return workload;
}

constexpr GeneratorInfo kGenerators[] = {
    {"chat", "conversations of about 4 turns behind 20 shared system prompts", make_chat, 1},
    {"agents", "agents of about 12 steps behind 5 sets of tools", make_agents, 1},
    {"rag", "5 documents of 2,000 in changing order", make_rag, .75},
    {"hot-prefix", "a quarter of the requests share one prompt of 6,144 tokens", make_hot_prefix,
     .95},
    {"unrelated", "no block is shared", make_unrelated, 1.25},
    {"bursts", "200 requests with one prefix at once", make_bursts, 1.25},
    {"mixed-slo", "half wants 0.5 s and 30 ms, the rest 3 s and 60 ms or 30 s and 200 ms",
     make_mixed_slo, 2},
    {"rl", "batches of 512: 16 answers to each of 32 prompts", make_rl, 1.25},
};

}  // namespace

std::span<const GeneratorInfo> generators() { return kGenerators; }

}  // namespace pickd::sim

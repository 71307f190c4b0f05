// The scheduler of the simulated engine, in virtual time.
#include "tools/enginesim/engine.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

namespace pickd::enginesim {
namespace {

EngineOptions small() {
  EngineOptions options;
  options.blocks = 100;
  options.batched_tokens_max = 1000;
  return options;
}

// Keys `first`, `first` + 1, ...: enough for `tokens` at 16 a block.
std::vector<BlockKey> keys_from(BlockKey first, std::uint32_t tokens) {
  std::vector<BlockKey> keys(tokens / 16);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

Request request(std::uint64_t id, std::uint32_t prompt, std::uint32_t output, BlockKey first_key) {
  return {id, prompt, output, 0, keys_from(first_key, prompt + output)};
}

// Runs one step; gives its tokens and moves the clock.
std::vector<TokenEvent> step(Engine& engine, std::uint64_t& now_ns) {
  std::vector<TokenEvent> events;
  const auto end_ns = engine.begin_step(now_ns);
  if (!end_ns) return events;
  now_ns = *end_ns;
  engine.end_step(events);
  return events;
}

// Runs until nothing is left; gives the last token of each request.
std::map<std::uint64_t, TokenEvent> run(Engine& engine, std::uint64_t& now_ns) {
  std::map<std::uint64_t, TokenEvent> last;
  while (engine.running() + engine.waiting() > 0) {
    for (const TokenEvent& event : step(engine, now_ns)) last[event.id] = event;
  }
  return last;
}

TEST(Engine, GivesEveryRequestAsManyTokensAsItAskedFor) {
  Engine engine(small());
  std::uint64_t now = 0;
  EXPECT_TRUE(engine.submit(request(1, 100, 5, 1000)));
  EXPECT_TRUE(engine.submit(request(2, 40, 9, 2000)));
  const auto last = run(engine, now);
  EXPECT_EQ(last.at(1).output_tokens, 5U);
  EXPECT_TRUE(last.at(1).finished);
  EXPECT_EQ(last.at(2).output_tokens, 9U);
  EXPECT_EQ(engine.counters().generation_tokens, 14U);
  EXPECT_EQ(engine.counters().prompt_tokens, 140U);
  EXPECT_EQ(engine.blocks().used, 0U);
}

TEST(Engine, ReusesTheFullBlocksOfAnEarlierPromptAndItsAnswer) {
  Engine engine(small());
  std::uint64_t now = 0;
  engine.submit(request(1, 64, 17, 1000));
  EXPECT_EQ(run(engine, now).at(1).cached_tokens, 0U);
  // The next turn: prompt and answer of the first, and more. Of 64 + 17 tokens the last was never
  // computed.
  engine.submit(request(2, 128, 1, 1000));
  EXPECT_EQ(run(engine, now).at(2).cached_tokens, 80U);
  EXPECT_EQ(engine.counters().prefix_queries_tokens, 64U + 128U);
  EXPECT_EQ(engine.counters().prefix_hits_tokens, 80U);
}

TEST(Engine, ComputesAtLeastTheLastTokenOfAPromptThatIsWhollyCached) {
  Engine engine(small());
  std::uint64_t now = 0;
  engine.submit(request(1, 64, 1, 1000));
  run(engine, now);
  engine.submit(request(2, 64, 1, 1000));
  EXPECT_EQ(run(engine, now).at(2).cached_tokens, 48U);
}

TEST(Engine, SharesBlocksAsSoonAsTheyAreScheduled) {
  Engine engine(small());
  std::uint64_t now = 0;
  engine.submit(request(1, 160, 50, 1000));
  engine.submit(request(2, 160, 50, 1000));
  engine.begin_step(now);
  // Both run in the same step; the second found what the first is just computing.
  EXPECT_EQ(engine.running(), 2U);
  EXPECT_EQ(engine.counters().prefix_hits_tokens, 144U);
  EXPECT_EQ(engine.blocks().used, 11U);
}

TEST(Engine, CutsLongPromptsIntoChunksOfTheTokenBudget) {
  EngineOptions options = small();
  options.batched_tokens_max = 100;
  Engine engine(options);
  std::uint64_t now = 0;
  engine.submit(request(1, 250, 2, 1000));
  EXPECT_TRUE(step(engine, now).empty());
  EXPECT_TRUE(step(engine, now).empty());
  const auto events = step(engine, now);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].output_tokens, 1U);
}

TEST(Engine, DecodesRunningRequestsWhileALongPromptIsPrefilled) {
  EngineOptions options = small();
  options.batched_tokens_max = 100;
  Engine engine(options);
  std::uint64_t now = 0;
  engine.submit(request(1, 20, 50, 1000));
  step(engine, now);
  engine.submit(request(2, 500, 1, 2000));
  for (int i = 0; i < 4; ++i) {
    const auto events = step(engine, now);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].id, 1U);
  }
}

TEST(Engine, RunsNoMoreSequencesThanAllowed) {
  EngineOptions options = small();
  options.sequences_max = 2;
  Engine engine(options);
  std::uint64_t now = 0;
  for (std::uint64_t id = 1; id <= 5; ++id) engine.submit(request(id, 16, 4, id * 1000));
  engine.begin_step(now);
  EXPECT_EQ(engine.running(), 2U);
  EXPECT_EQ(engine.waiting(), 3U);
}

TEST(Engine, TakesAsLongAsItsRatesSay) {
  EngineOptions options = small();
  options.rates = {.step_s = 0.01,
                   .prefill_s = 1e-3,
                   .attention_s = 1e-5,
                   .decode_sequence_s = 1e-4,
                   .decode_token_s = 1e-6,
                   .noise = 0,
                   .time_factor = 2};
  Engine engine(options);
  std::uint64_t now = 0;
  engine.submit(request(1, 100, 3, 1000));
  step(engine, now);  // 100 prompt tokens: attention 100 * (100 - 50)
  EXPECT_NEAR(static_cast<double>(now), (0.01 + 0.1 + 0.05) / 2 * 1e9, 10);
  const std::uint64_t before = now;
  step(engine, now);  // one sequence decodes its 101st token
  EXPECT_NEAR(static_cast<double>(now - before), (0.01 + 1e-4 + 101e-6) / 2 * 1e9, 10);
}

TEST(Engine, NoiseIsReproducibleAndOffWhenZero) {
  EngineOptions options = small();
  options.rates.noise = 0.1;
  std::set<std::uint64_t> ends;
  for (const std::uint64_t seed : {7U, 7U, 8U}) {
    options.seed = seed;
    Engine engine(options);
    std::uint64_t now = 0;
    engine.submit(request(1, 100, 20, 1000));
    run(engine, now);
    ends.insert(now);
  }
  EXPECT_EQ(ends.size(), 2U);
}

TEST(Engine, PreemptsTheNewestWhenBlocksRunOutAndFinishesItLater) {
  EngineOptions options = small();
  options.blocks = 10;
  Engine engine(options);
  std::uint64_t now = 0;
  engine.submit(request(1, 64, 60, 1000));  // 8 blocks at the end
  engine.submit(request(2, 64, 60, 2000));
  std::vector<std::uint64_t> order;
  while (engine.running() + engine.waiting() > 0) {
    for (const TokenEvent& event : step(engine, now)) {
      if (event.finished) order.push_back(event.id);
    }
  }
  EXPECT_GE(engine.counters().preemptions, 1U);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(engine.counters().generation_tokens, 120U);  // no token was given twice
  EXPECT_EQ(engine.counters().prefix_queries_tokens,
            128U);  // a lookup after preemption is not counted
}

TEST(Engine, FreesTheBlocksOfAnAbortedRequestAtOnce) {
  Engine engine(small());
  std::uint64_t now = 0;
  engine.submit(request(1, 320, 50, 1000));
  engine.begin_step(now);
  EXPECT_GT(engine.blocks().used, 0U);
  EXPECT_TRUE(engine.abort(1));
  EXPECT_EQ(engine.blocks().used, 0U);
  EXPECT_FALSE(engine.abort(1));
  std::vector<TokenEvent> events;
  engine.end_step(events);
  EXPECT_TRUE(events.empty());
  EXPECT_FALSE(engine.begin_step(now).has_value());
}

TEST(Engine, RefusesWhatCouldNeverFit) {
  Engine engine(small());
  EXPECT_FALSE(engine.submit(request(1, 1600, 1, 1000)));
  EXPECT_TRUE(engine.submit(request(2, 1599, 1, 1000)));
  EXPECT_FALSE(engine.submit(request(3, 0, 1, 1000)));
  EXPECT_FALSE(engine.submit(request(4, 1, 0, 1000)));
}

TEST(Engine, RunsNoMoreAdaptersAtOnceThanAllowedAndLetsOthersPass) {
  Engine engine(small());
  std::uint64_t now = 0;
  for (const std::uint32_t adapter : {1U, 2U, 1U, 0U}) {
    Request one = request(10 + engine.waiting(), 16, 3, 1000 * (1 + engine.waiting()));
    one.adapter = adapter;
    engine.submit(one);
  }
  engine.begin_step(now);
  EXPECT_EQ(engine.running(), 3U);
  EXPECT_EQ(engine.running_adapters(), std::vector<std::uint32_t>{1});
  EXPECT_EQ(engine.waiting_adapters(), std::vector<std::uint32_t>{2});
  std::vector<TokenEvent> events;
  engine.end_step(events);
  EXPECT_EQ(run(engine, now).at(11).output_tokens, 3U);
}

TEST(Engine, ConservesBlocksAndTokensUnderRandomLoad) {
  EngineOptions options = small();
  options.blocks = 40;
  options.batched_tokens_max = 64;
  options.sequences_max = 6;
  Engine engine(options);
  base::Random random(3);
  std::uint64_t now = 0;
  std::uint64_t next_id = 1;
  std::map<std::uint64_t, std::uint32_t> open;  // tokens still to come
  std::vector<TokenEvent> events;
  for (int round = 0; round < 20'000; ++round) {
    if (open.size() < 12 && random.below(3) == 0) {
      const std::uint32_t prompt = 1 + random.below(200);
      const std::uint32_t output = 1 + random.below(40);
      ASSERT_TRUE(engine.submit(request(next_id, prompt, output, 1000 * (1 + random.below(5)))));
      open[next_id++] = output;
    }
    if (!open.empty() && random.below(40) == 0) {
      ASSERT_TRUE(engine.abort(open.begin()->first));
      open.erase(open.begin());
    }
    if (random.below(500) == 0) engine.forget_prefixes();
    if (!engine.in_step()) {
      if (const auto end = engine.begin_step(now)) now = *end;
    } else {
      events.clear();
      engine.end_step(events);
      for (const TokenEvent& event : events) {
        ASSERT_EQ(event.finished, --open.at(event.id) == 0);
        if (event.finished) open.erase(event.id);
      }
    }
    const BlockCounts counts = engine.blocks();
    ASSERT_EQ(counts.free + counts.used + counts.cached, 40U);
    ASSERT_EQ(engine.running() + engine.waiting(), open.size());
    if (open.empty()) {
      ASSERT_EQ(counts.used, 0U);
    }
  }
  EXPECT_GT(engine.counters().preemptions, 0U);
  EXPECT_GT(engine.counters().prefix_hits_tokens, 0U);
}

}  // namespace
}  // namespace pickd::enginesim

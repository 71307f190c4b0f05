// What ran at an endpoint between two moments.
#include "daemon/latency/engine_history.hpp"

#include <gtest/gtest.h>

namespace pickd::latency {
namespace {

// A token a millisecond, and nothing for what it looks at.
constexpr EngineHistory::PrefillRates kRates{1e-3, 0};

TEST(EngineHistory, IntegratesWhatDecodes) {
  EngineHistory history;
  history.begin_decoding(10, 1000);
  history.begin_decoding(12, 500);
  const EngineHistory::Look from = history.look(12, kRates);
  history.end_decoding(14, 1000);
  const EngineHistory::Look to = history.look(15, kRates);
  EXPECT_DOUBLE_EQ(to.sequence_s - from.sequence_s, 2 * 2 + 1 * 1);
  EXPECT_DOUBLE_EQ(to.kv_token_s - from.kv_token_s, 2 * 1500 + 1 * 500);
}

// Else a request that ends while a long prompt is computed would seem to have been held up by
// nothing.
TEST(EngineHistory, CountsThePartOfThePromptThatMustBeComputedByNow) {
  EngineHistory history;
  history.begin(10, {1, 4000, 8e6});
  EXPECT_DOUBLE_EQ(history.look(10, kRates).prefill_tokens, 0);
  history.begin(11, {2, 1000, 5e5});
  EXPECT_DOUBLE_EQ(history.look(11, kRates).prefill_tokens, 1000);
  EXPECT_DOUBLE_EQ(history.look(11, kRates).prefill_work, 2e6);
  EXPECT_DOUBLE_EQ(history.look(20, kRates).prefill_tokens, 4000) << "no more than it needs";
  history.end_waiting(20, 1);
  history.computed(20, 4000, 8e6);
  EXPECT_DOUBLE_EQ(history.look(20, kRates).prefill_tokens, 4000) << "each token once";
  EXPECT_DOUBLE_EQ(history.look(20.5, kRates).prefill_tokens, 4500) << "and the next one begins";
  EXPECT_EQ(history.waiting(), 1U);
}

TEST(EngineHistory, ForgetsWhoLeftWithoutAFirstToken) {
  EngineHistory history;
  history.begin(10, {1, 4000, 8e6});
  history.end_waiting(12, 1);
  history.end_waiting(12, 1);
  history.end_waiting(12, 7);
  EXPECT_EQ(history.waiting(), 0U);
  EXPECT_DOUBLE_EQ(history.look(13, kRates).prefill_tokens, 0);
}

TEST(EngineHistory, TakesATimeBeforeTheLastForTheLast) {
  EngineHistory history;
  history.begin_decoding(10, 100);
  history.begin(9, {1, 1000, 0});
  const EngineHistory::Look seen = history.look(8, kRates);
  EXPECT_DOUBLE_EQ(seen.at_s, 10);
  EXPECT_DOUBLE_EQ(seen.prefill_tokens, 0);
}

// Rates that are not known yet may be 0: then nobody knows how far it is, and all of it counts.
TEST(EngineHistory, GivesANumberWithoutRates) {
  EngineHistory history;
  history.begin(10, {1, 1000, 0});
  EXPECT_DOUBLE_EQ(history.look(10, {}).prefill_tokens, 1000);
}

}  // namespace
}  // namespace pickd::latency

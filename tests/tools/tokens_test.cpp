// Pseudo-tokens and block keys of the simulated engine.
#include "tools/enginesim/tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace pickd::enginesim {
namespace {

std::size_t common(const std::vector<BlockKey>& a, const std::vector<BlockKey>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TEST(Tokens, AreFourBytesOfTextEach) {
  EXPECT_EQ(tokens_of("").size(), 0U);
  EXPECT_EQ(tokens_of("abcd").size(), 1U);
  EXPECT_EQ(tokens_of("abcde").size(), 2U);
}

TEST(Tokens, AnAnswerSentBackInTheNextPromptHasTheKeysItHadBefore) {
  const std::string prompt(256, 'x');
  const auto tokens = tokens_of(prompt);
  const std::uint64_t seed = answer_seed(tokens);
  const auto first = block_keys("m", "", tokens, seed, 64, 16);
  std::string next = prompt;
  for (std::uint32_t i = 0; i < 64; ++i) next += answer_word(seed, i);
  const auto next_tokens = tokens_of(next + std::string(64, 'y'));
  const auto second = block_keys("m", "", next_tokens, answer_seed(next_tokens), 1, 16);
  ASSERT_EQ(first.size(), 8U);
  EXPECT_EQ(common(first, second), 8U);
}

TEST(Tokens, KeysOfOtherModelsSaltsAndHeadsHaveNothingInCommon) {
  const auto tokens = tokens_of(std::string(256, 'x'));
  const auto keys = block_keys("m", "", tokens, 1, 1, 16);
  EXPECT_EQ(common(keys, block_keys("n", "", tokens, 1, 1, 16)), 0U);
  EXPECT_EQ(common(keys, block_keys("m", "s", tokens, 1, 1, 16)), 0U);
  EXPECT_EQ(common(keys, block_keys("m", "", tokens_of("y" + std::string(255, 'x')), 1, 1, 16)),
            0U);
}

TEST(Tokens, AnswersThatEndByThemselvesHaveTheMeanAskedFor) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) sum += answer_length(seed, 100);
  EXPECT_NEAR(sum / 20'000, 100, 3);
}

}  // namespace
}  // namespace pickd::enginesim

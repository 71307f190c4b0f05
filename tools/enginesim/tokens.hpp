// Pseudo-tokens: text becomes one token for every four bytes, and answers are made of words of four
// bytes, so an answer that comes back within the next prompt falls on the same tokens when the
// prompt before it was a multiple of four bytes long. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/enginesim/block_cache.hpp"

namespace pickd::enginesim {

using Token = std::uint32_t;

// The last token of a text that is not a multiple of four bytes long is padded with zero bytes.
std::vector<Token> tokens_of(std::string_view text);

// The same prompt gets the same answer from every engine, as with greedy decoding.
std::uint64_t answer_seed(std::span<const Token> prompt);

// Word `index` of an answer: a space and three letters. Its token is tokens_of() of it.
std::string answer_word(std::uint64_t seed, std::uint32_t index);

// When an answer ends by itself: exponential with the given mean, at least 1.
std::uint32_t answer_length(std::uint64_t seed, double mean_tokens);

// Keys of the full blocks of prompt and answer; `name` (model or adapter) and `salt` begin the
// chain.
std::vector<BlockKey> block_keys(std::string_view name, std::string_view salt,
                                 std::span<const Token> prompt, std::uint64_t seed,
                                 std::uint32_t output_tokens, std::uint32_t block_tokens);

}  // namespace pickd::enginesim

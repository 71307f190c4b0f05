// Text, answers and keys. See tokens.hpp.
#include "tools/enginesim/tokens.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "daemon/base/random.hpp"

namespace pickd::enginesim {

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens((text.size() + sizeof(Token) - 1) / sizeof(Token), 0);
  if (!text.empty()) std::memcpy(tokens.data(), text.data(), text.size());
  return tokens;
}

std::uint64_t answer_seed(std::span<const Token> prompt) {
  return XXH3_64bits(prompt.data(), prompt.size_bytes());
}

std::string answer_word(std::uint64_t seed, std::uint32_t index) {
  std::uint64_t bits = base::Random(seed ^ (std::uint64_t{index} << 32)).next();
  std::string word(4, ' ');
  for (int letter = 1; letter < 4; ++letter, bits /= 26) {
    word[static_cast<std::size_t>(letter)] = static_cast<char>('a' + bits % 26);
  }
  return word;
}

std::uint32_t answer_length(std::uint64_t seed, double mean_tokens) {
  const double uniform = (static_cast<double>(base::Random(~seed).next() >> 11) + 0.5) * 0x1p-53;
  return static_cast<std::uint32_t>(std::clamp(-std::log(uniform) * mean_tokens, 1.0, 1e9));
}

std::vector<BlockKey> block_keys(std::string_view name, std::string_view salt,
                                 std::span<const Token> prompt, std::uint64_t seed,
                                 std::uint32_t output_tokens, std::uint32_t block_tokens) {
  const std::size_t total = prompt.size() + output_tokens;
  std::uint64_t key = XXH3_64bits_withSeed(name.data(), name.size(), salt.size());
  key = XXH3_64bits_withSeed(salt.data(), salt.size(), key);
  std::vector<BlockKey> keys;
  keys.reserve(total / block_tokens);
  std::vector<Token> block(block_tokens);
  for (std::size_t begin = 0; begin + block_tokens <= total; begin += block_tokens) {
    for (std::size_t i = 0; i < block_tokens; ++i) {
      const std::size_t at = begin + i;
      block[i] =
          at < prompt.size()
              ? prompt[at]
              : tokens_of(answer_word(seed, static_cast<std::uint32_t>(at - prompt.size())))[0];
    }
    key = XXH3_64bits_withSeed(block.data(), block.size() * sizeof(Token), key);
    keys.push_back(key == 0 ? 1 : key);
  }
  return keys;
}

}  // namespace pickd::enginesim

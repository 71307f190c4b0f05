// Prompts of letters made from a seed: equal seeds give equal prompts, different ones share no
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/limits.hpp"
#include "daemon/base/random.hpp"

namespace pickd::bench {

inline std::string make_prompt_text(std::uint32_t tokens, std::uint64_t seed) {
  base::Random random(seed + 1);
  std::string text(static_cast<std::size_t>(tokens) * abi::kBytesPerToken, ' ');
  for (char& letter : text) letter = static_cast<char>('a' + random.below(26));
  return text;
}

}  // namespace pickd::bench

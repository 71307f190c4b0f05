// Usage: what engines told of one request so far, abi::kUnknown32 where nothing was. Engines tell
// it once at the end or piece by piece, so a later report adds to an earlier one and never takes
// away from it.
#pragma once

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

struct Usage {
  std::uint32_t prompt_tokens = abi::kUnknown32;
  std::uint32_t cached_tokens = abi::kUnknown32;
  std::uint32_t output_tokens = abi::kUnknown32;

  bool is_told() const {
    return prompt_tokens != abi::kUnknown32 || cached_tokens != abi::kUnknown32 ||
           output_tokens != abi::kUnknown32;
  }
  // What `newer` does not tell stays as it was.
  void update(const Usage& newer) {
    const auto take = [](std::uint32_t& known, std::uint32_t told) {
      if (told != abi::kUnknown32) known = told;
    };
    take(prompt_tokens, newer.prompt_tokens);
    take(cached_tokens, newer.cached_tokens);
    take(output_tokens, newer.output_tokens);
  }
};

}  // namespace pickd::endpoints

// Settings of the producers, as the Endpoint Picker's configuration says them.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

struct SourceSettings {
  std::uint64_t prefix_tokens_max = 0;  // prompt tokens that count for a match; 0: no limit
  // Capacity of an endpoint that names none, where the configuration says it outright.
  std::optional<std::uint64_t> capacity_tokens;
  // Output tokens that count as load until the first token, as a share of the prompt; 0: none.
  double output_ratio = 0;
  std::uint64_t output_tokens_max = 0;  // 0: no limit
  double slo_buffer = 1;                // what a wanted ITL is multiplied by
  bool headroom_of_mean = false;        // of what is predicted; else of its percentile
};

class Source : public virtual Plugin {
 public:
  virtual void apply(SourceSettings& settings) const = 0;
};

}  // namespace pickd::pick

// Metric specs: which metric of which engine means what. The built-in table is engines.def's; the
// configuration may override fields of an engine or add one, in the grammar of the Endpoint Picker:
//
//   name                         any label set
//   name{label=value,other="v"}  only series that carry these
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/result.hpp"

namespace pickd::scrape {

enum class Field : std::uint8_t {
  kWaiting,      // requests queued
  kRunning,      // requests running
  kKvUse,        // share of the KV cache in use, 0..1
  kCacheInfo,    // block size and number of blocks as labels
  kBlockTokens,  // the same as values
  kBlocks,
  kAdapters,  // labels max_lora, running_lora_adapters, waiting_lora_adapters; value: a stamp
  kProcessStart,
  kProgress,  // counters that only a restart sets back
  kCount
};

struct MetricSpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // that a series must carry
};

// Reads the grammar above. Errors say what is wrong and where.
base::Result<MetricSpec> parse_metric_spec(std::string_view text);

// What the configuration says of one engine; empty: as built in.
struct EngineOverride {
  std::string name;
  std::string waiting;
  std::string running;
  std::string kv_use;
  std::string adapters;
  std::string cache_info;
  std::string block_tokens_label;  // of cache_info
  std::string blocks_label;
  std::string block_tokens;
  std::string blocks;
};

class MetricSpecs {
 public:
  // The built-in table.
  MetricSpecs();
  // The table with changes. Errors name the engine and the field.
  static base::Result<MetricSpecs> make(const std::vector<EngineOverride>& overrides);

  bool knows(std::string_view engine) const;
  std::vector<std::string_view> engines() const;

  // One metric that means something for one engine.
  struct Entry {
    std::uint16_t engine;
    Field field;
    std::uint8_t rank;  // 0: preferred; others only where it is absent
    MetricSpec spec;
  };
  struct Engine {
    std::string name;
    std::string block_tokens_label = "block_size";
    std::string blocks_label = "num_gpu_blocks";
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<Engine>& engine_list() const { return engines_; }

 private:
  std::vector<Engine> engines_;
  std::vector<Entry> entries_;
};

}  // namespace pickd::scrape

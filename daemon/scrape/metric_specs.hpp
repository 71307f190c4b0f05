// Metric specs: which metric of which engine means what. The built-in table is engines.def's; the
// configuration may override fields of an engine or add one, in the grammar of the Endpoint Picker:
//
//   name                         any label set
//   name{label=value,other="v"}  only series that carry these
#pragma once

#include <cstddef>
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
  kProgress,  // counters that only a restart sets back
  kProcessStart,
  kCount
};

struct MetricSpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // that a series must carry
};

// Reads the grammar above. Errors say what is wrong.
base::Result<MetricSpec> parse_metric_spec(std::string_view text);

// What the configuration says of one engine; empty: as built in. Where a field is set, it is the
// only spec of the field, and the built-in ones of that field are not looked at.
struct EngineOverride {
  std::string name;  // a built-in engine, or a new one
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
  static constexpr std::size_t kEnginesMax = 32;
  static constexpr std::uint16_t kAnyEngine = 0xFFFF;

  // The built-in table.
  MetricSpecs();
  // The table with changes. Errors name the engine and the field.
  static base::Result<MetricSpecs> make(const std::vector<EngineOverride>& overrides);

  // The engine's place in engines(), or kAnyEngine when there is none of this name or alias.
  std::uint16_t find_engine(std::string_view name) const;

  struct Engine {
    std::string name;
    std::string block_tokens_label;
    std::string blocks_label;
    std::vector<std::string> aliases;
  };
  const std::vector<Engine>& engines() const { return engines_; }

  // One metric that means something for one engine (kAnyEngine: for all).
  struct Entry {
    std::uint16_t engine;
    Field field;
    std::uint8_t order;  // 0: preferred; others only where it is absent
    MetricSpec spec;
  };
  const std::vector<Entry>& entries() const { return entries_; }

  // The entries of one metric name, as places in entries(); kNone: nobody asks for it. Fast: called
  // for every line of a page.
  static constexpr std::uint16_t kNone = 0xFFFF;
  std::uint16_t find_name(std::string_view name) const {
    const std::uint16_t* slot = &slots_[hash(name)];
    while (*slot != kNone && names_[*slot].text != name) ++slot;
    return *slot;
  }
  const std::vector<std::uint16_t>& entries_of(std::uint16_t name) const {
    return names_[name].entries;
  }

  // The labels that any spec reads or matches, each once, the common ones first.
  const std::vector<std::string>& labels() const { return labels_; }
  // What the name of one of them begins the hash of its value with.
  std::uint64_t label_hash(std::size_t label) const { return label_hashes_[label]; }

 private:
  struct Name {
    std::string text;
    std::vector<std::uint16_t> entries;
  };
  static constexpr std::size_t kSlotBits = 10;

  // By size and last bytes: the names of a page begin alike and end differently.
  static std::size_t hash(std::string_view name);
  void build();
  void add(std::uint16_t engine, Field field, std::uint8_t order, MetricSpec spec);
  base::Result<void> override_engine(const EngineOverride& change);

  std::vector<Engine> engines_;
  std::vector<Entry> entries_;
  std::vector<Name> names_;
  std::vector<std::string> labels_;
  std::vector<std::uint64_t> label_hashes_;
  std::vector<std::uint16_t> slots_;  // open addressing, with room behind for the last chain
};

// Labels with a meaning of their own, at these places of labels().
enum class KnownLabel : std::uint8_t {
  kEngineRank,  // "engine"
  kDpRank,      // "dp_rank"
  kModelName,   // "model_name"
  kModel,       // "model"
  kTpRank,      // "tp_rank" and the next two: parts of one rank, which report the same
  kPpRank,      // "pp_rank"
  kEpRank,      // "moe_ep_rank"
  kPriority,    // "priority": series of one priority beside that of all
  kMaxLora,
  kRunningLora,
  kWaitingLora,
  kCount
};

// Whether a label (its place in labels()) tells series of one rank apart that all report the rank's
// value.
constexpr bool is_part_of_rank(std::size_t label) {
  return label == static_cast<std::size_t>(KnownLabel::kTpRank) ||
         label == static_cast<std::size_t>(KnownLabel::kPpRank) ||
         label == static_cast<std::size_t>(KnownLabel::kEpRank) ||
         label == static_cast<std::size_t>(KnownLabel::kPriority);
}

}  // namespace pickd::scrape

#include "daemon/scrape/metric_specs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "abi/key.hpp"
#include "daemon/scrape/number.hpp"

namespace pickd::scrape {

namespace {

constexpr std::size_t kNameBytesMax = 200;
// Less than half of the slots, so that chains stay short.
constexpr std::size_t kNamesMax = 400;

const char* const kKnownLabels[] = {"engine",
                                    "dp_rank",
                                    "model_name",
                                    "model",
                                    "tp_rank",
                                    "pp_rank",
                                    "moe_ep_rank",
                                    "priority",
                                    "max_lora",
                                    "running_lora_adapters",
                                    "waiting_lora_adapters"};
static_assert(std::size(kKnownLabels) == static_cast<std::size_t>(KnownLabel::kCount));

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view text, bool colons) {
  if (text.empty() || text.size() > kNameBytesMax) return false;
  if (is_digit(text.front())) return false;
  return std::all_of(text.begin(), text.end(), [colons](char letter) {
    return is_name_byte(letter) && (colons || letter != ':');
  });
}

base::Error refuse(std::string_view text, const std::string& why) {
  return {-EINVAL, "\"" + std::string(text) + "\" is no metric spec: " + why +
                       "; right would be name or name{label=value,...}"};
}

}  // namespace

base::Result<MetricSpec> parse_metric_spec(std::string_view text) {
  MetricSpec spec;
  std::string_view rest = trim(text);
  const std::size_t brace = rest.find('{');
  spec.name = trim(rest.substr(0, brace));
  if (!is_name(spec.name, true)) return refuse(text, "a name has letters, digits, _ and :");
  if (brace == std::string_view::npos) return spec;
  rest.remove_prefix(brace + 1);
  if (rest.empty() || rest.back() != '}') return refuse(text, "the } at the end is missing");
  rest.remove_suffix(1);
  while (!trim(rest).empty()) {
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return refuse(text, "a label has no =");
    const std::string_view label = trim(rest.substr(0, equals));
    if (!is_name(label, false)) return refuse(text, "a label has letters, digits and _");
    rest = trim(rest.substr(equals + 1));
    std::string_view value;
    if (!rest.empty() && rest.front() == '"') {
      const std::size_t quote = rest.find('"', 1);
      if (quote == std::string_view::npos) return refuse(text, "a quote is not closed");
      value = rest.substr(1, quote - 1);
      rest = trim(rest.substr(quote + 1));
      if (!rest.empty() && rest.front() != ',') return refuse(text, "a , is missing after a value");
      if (!rest.empty()) rest.remove_prefix(1);
    } else {
      const std::size_t comma = rest.find(',');
      value = trim(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
    if (value.size() > kNameBytesMax) return refuse(text, "a value has more than 200 bytes");
    spec.labels.emplace_back(label, value);
  }
  return spec;
}

MetricSpecs::MetricSpecs() {
  const auto engine = [this](const char* name, const char* block_tokens, const char* blocks) {
    engines_.push_back({name, block_tokens, blocks, {}});
  };
  const auto alias = [this](const char* name) { engines_.back().aliases.emplace_back(name); };
  const auto spec = [this](Field field, std::uint8_t order, const char* text) {
    add(static_cast<std::uint16_t>(engines_.size() - 1), field, order, *parse_metric_spec(text));
  };
#define ENGINE(name, block_tokens, blocks) engine(name, block_tokens, blocks);
#define ALIAS(name) alias(name);
#define SPEC(field, order, text) spec(Field::field, order, text);
#include "daemon/scrape/engines.def"
#undef ENGINE
#undef ALIAS
#undef SPEC
  add(kAnyEngine, Field::kProcessStart, 0, {"process_start_time_seconds", {}});
  build();
}

base::Result<MetricSpecs> MetricSpecs::make(const std::vector<EngineOverride>& overrides) {
  MetricSpecs specs;
  for (const EngineOverride& change : overrides) {
    if (auto changed = specs.override_engine(change); !changed) return changed.error();
  }
  specs.build();
  if (specs.names_.size() > kNamesMax)
    return base::Error{-E2BIG, "the engines have more than 400 metric names together"};
  return specs;
}

std::uint16_t MetricSpecs::find_engine(std::string_view name) const {
  for (std::size_t at = 0; at < engines_.size(); ++at) {
    const Engine& engine = engines_[at];
    if (engine.name == name ||
        std::find(engine.aliases.begin(), engine.aliases.end(), name) != engine.aliases.end()) {
      return static_cast<std::uint16_t>(at);
    }
  }
  return kAnyEngine;
}

void MetricSpecs::add(std::uint16_t engine, Field field, std::uint8_t order, MetricSpec spec) {
  entries_.push_back({engine, field, order, std::move(spec)});
}

base::Result<void> MetricSpecs::override_engine(const EngineOverride& change) {
  if (change.name.empty()) return base::Error{-EINVAL, "an engine has no name"};
  std::uint16_t engine = find_engine(change.name);
  if (engine == kAnyEngine) {
    if (engines_.size() == kEnginesMax)
      return base::Error{-E2BIG, "there are more than 32 engines"};
    engine = static_cast<std::uint16_t>(engines_.size());
    engines_.push_back({change.name, "block_size", "num_gpu_blocks", {}});
  }
  const auto set = [&](Field field, const char* key, const std::string& text) {
    if (text.empty()) return base::Result<void>{};
    auto spec = parse_metric_spec(text);
    if (!spec) {
      return base::Result<void>{
          base::Error{-EINVAL, "engine " + change.name + ", " + key + ": " + spec.error().text}};
    }
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.engine == engine && entry.field == field;
    });
    add(engine, field, 0, std::move(*spec));
    return base::Result<void>{};
  };
  for (const auto& [field, key, text] :
       {std::tuple{Field::kWaiting, "queuedRequestsSpec", &change.waiting},
        std::tuple{Field::kRunning, "runningRequestsSpec", &change.running},
        std::tuple{Field::kKvUse, "kvUsageSpec", &change.kv_use},
        std::tuple{Field::kAdapters, "loraSpec", &change.adapters},
        std::tuple{Field::kCacheInfo, "cacheInfoSpec", &change.cache_info},
        std::tuple{Field::kBlockTokens, "cacheBlockSizeSpec", &change.block_tokens},
        std::tuple{Field::kBlocks, "cacheNumBlocksSpec", &change.blocks}}) {
    if (auto done = set(field, key, *text); !done) return done;
  }
  if (!change.block_tokens_label.empty())
    engines_[engine].block_tokens_label = change.block_tokens_label;
  if (!change.blocks_label.empty()) engines_[engine].blocks_label = change.blocks_label;
  return {};
}

std::size_t MetricSpecs::hash(std::string_view name) {
  std::uint64_t tail = 0;
  const std::size_t bytes = std::min(name.size(), sizeof tail);
  std::memcpy(&tail, name.data() + (name.size() - bytes), bytes);
  tail ^= name.size() << 56;
  return (tail * 0x9E3779B97F4A7C15ULL) >> (64 - kSlotBits);
}

void MetricSpecs::build() {
  names_.clear();
  labels_.assign(std::begin(kKnownLabels), std::end(kKnownLabels));
  const auto want_label = [this](const std::string& label) {
    if (label.empty() || std::find(labels_.begin(), labels_.end(), label) != labels_.end()) return;
    labels_.push_back(label);
  };
  for (const Engine& engine : engines_) {
    want_label(engine.block_tokens_label);
    want_label(engine.blocks_label);
  }
  for (std::size_t at = 0; at < entries_.size(); ++at) {
    for (const auto& [label, value] : entries_[at].spec.labels) want_label(label);
    const std::string& text = entries_[at].spec.name;
    auto name = std::find_if(names_.begin(), names_.end(),
                             [&text](const Name& known) { return known.text == text; });
    if (name == names_.end()) name = names_.insert(name, Name{text, {}});
    name->entries.push_back(static_cast<std::uint16_t>(at));
  }
  label_hashes_.clear();
  for (const std::string& label : labels_)
    label_hashes_.push_back(XXH3_64bits(label.data(), label.size()));
  slots_.assign((std::size_t{1} << kSlotBits) + names_.size() + 1, kNone);
  for (std::size_t at = 0; at < names_.size(); ++at) {
    std::size_t slot = hash(names_[at].text);
    while (slots_[slot] != kNone) ++slot;
    slots_[slot] = static_cast<std::uint16_t>(at);
  }
}

}  // namespace pickd::scrape

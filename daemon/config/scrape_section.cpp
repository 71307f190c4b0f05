// `scrape.engines`: which metric of an engine means what, where it differs from what is built in.
#include <iterator>
#include <string>
#include <unordered_map>

#include "abi/limits.hpp"
#include "daemon/config/map_reader.hpp"
#include "daemon/config/sections.hpp"
#include "daemon/config/values.hpp"

namespace pickd::config {
namespace {

constexpr std::size_t kMetricBytesMax = 512;
constexpr std::size_t kEnginesMax = 32;

struct Metric {
  const char* key;
  std::string EngineMetricsConfig::*member;
  const char* help;
};

constexpr Metric kMetrics[] = {
    {"waiting", &EngineMetricsConfig::waiting, "Requests queued."},
    {"running", &EngineMetricsConfig::running, "Requests running."},
    {"kv_use", &EngineMetricsConfig::kv_use, "Share of the KV cache in use, 0 to 1."},
    {"adapters", &EngineMetricsConfig::adapters,
     "LoRA adapters, in the labels that vLLM gives them."},
    {"cache_info", &EngineMetricsConfig::cache_info,
     "A metric whose labels say block size and number of blocks."},
    {"block_tokens_label", &EngineMetricsConfig::block_tokens_label,
     "The label of cache_info with the tokens of a block."},
    {"blocks_label", &EngineMetricsConfig::blocks_label,
     "The label of cache_info with the number of blocks."},
    {"block_tokens", &EngineMetricsConfig::block_tokens,
     "Tokens of a block, where a metric's value says it."},
    {"blocks", &EngineMetricsConfig::blocks,
     "Blocks of the KV cache, where a metric's value says it."},
};

}  // namespace

const std::vector<ItemKey>& engine_keys() {
  static const std::vector<ItemKey> keys = [] {
    std::vector<ItemKey> made = {
        {"name", "1 to 63 bytes", "", "A known engine, or a new one that endpoints then name."}};
    for (const Metric& metric : kMetrics)
      made.push_back({metric.key, "0 to 512 bytes", "as built in", metric.help});
    return made;
  }();
  return keys;
}

void read_engines(const Node& list, const Place& place, std::vector<EngineMetricsConfig>& engines,
                  Errors& errors) {
  if (list.is_null()) return;
  if (!list.is_list() || list.items.size() > kEnginesMax) {
    return errors.add(place, "scrape.engines",
                      "must be a list of at most 32 engines (`- name: ...`)");
  }
  std::unordered_map<std::string, Place> seen;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    MapReader read(list.items[i].get(), "scrape.engines[" + std::to_string(i) + "]",
                   list.items[i]->place, errors);
    EngineMetricsConfig engine;
    engine.place = list.items[i]->place;
    engine.name = read.required_text("name", 1, abi::kEngineBytesMax);
    for (const Metric& metric : kMetrics)
      engine.*metric.member = read.text(metric.key, "", 0, kMetricBytesMax);
    const auto [first, added] = seen.emplace(engine.name, engine.place);
    if (!added && !engine.name.empty())
      read.refuse("name", "the engine " + shown(engine.name) + " is there already, at " +
                              first->second.text());
    read.finish();
    engines.push_back(std::move(engine));
  }
}

std::string print_engines(const std::vector<EngineMetricsConfig>& engines) {
  if (engines.empty()) return "";
  std::string out = "  engines:\n";
  for (const EngineMetricsConfig& engine : engines) {
    out += "    - name: " + format_text(engine.name) + "\n";
    for (const Metric& metric : kMetrics) {
      if (const std::string& text = engine.*metric.member; !text.empty())
        out += std::string("      ") + metric.key + ": " + format_text(text) + "\n";
    }
  }
  return out;
}

}  // namespace pickd::config

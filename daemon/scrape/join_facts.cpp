#include "daemon/scrape/join_facts.hpp"

#include <algorithm>
#include <cmath>

namespace pickd::scrape {

namespace {

using endpoints::EngineFacts;
using endpoints::ModelLoad;

constexpr std::uint64_t kCountMax = 1ULL << 31;  // as of one page: no engines have so many requests

std::uint32_t add(std::uint32_t a, std::uint32_t b) {
  if (a == abi::kUnknown32 || b == abi::kUnknown32) return abi::kUnknown32;
  const std::uint64_t sum = std::uint64_t{a} + b;
  return sum < kCountMax ? static_cast<std::uint32_t>(sum) : abi::kUnknown32;
}

void add_names(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (names.size() == abi::kEndpointAdaptersMax) return;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

void join_kv_use(EngineFacts& all, const std::vector<EngineFacts>& pages) {
  std::uint64_t weighted = 0;
  std::uint64_t ranks = 0;
  std::uint32_t largest = 0;
  for (const EngineFacts& page : pages) {
    if (page.kv_use_ppm == abi::kUnknown32 || page.kv_use_max_ppm == abi::kUnknown32) return;
    const std::uint64_t of_page = std::max(1U, page.ranks);
    weighted += of_page * page.kv_use_ppm;
    ranks += of_page;
    largest = std::max(largest, page.kv_use_max_ppm);
  }
  if (ranks == 0) return;
  all.kv_use_ppm = static_cast<std::uint32_t>((weighted + ranks / 2) / ranks);
  all.kv_use_max_ppm = largest;
}

void join_capacity(EngineFacts& all, const std::vector<EngineFacts>& pages) {
  const std::uint32_t block_tokens = pages.front().block_tokens;
  std::uint64_t blocks = 0;
  for (const EngineFacts& page : pages) {
    if (page.block_tokens != block_tokens || page.blocks == 0) return;
    blocks += page.blocks;
  }
  all.block_tokens = block_tokens;
  all.blocks = blocks;
}

void join_adapters(EngineFacts& all, const std::vector<EngineFacts>& pages) {
  for (const EngineFacts& page : pages) {
    if (!page.tells_adapters) continue;
    const bool first = !all.tells_adapters;
    all.tells_adapters = true;
    all.adapters_max = first ? page.adapters_max : std::min(all.adapters_max, page.adapters_max);
    add_names(all.adapters_active, page.adapters_active);
    add_names(all.adapters_waiting, page.adapters_waiting);
  }
}

// Load by model where each page tells of its models; a page that tells one sum only hides whose.
void join_models(EngineFacts& all, const std::vector<EngineFacts>& pages) {
  for (const EngineFacts& page : pages) {
    if (page.models.empty()) {
      all.models.clear();
      return;
    }
    for (const ModelLoad& load : page.models) {
      const auto known =
          std::find_if(all.models.begin(), all.models.end(),
                       [&load](const ModelLoad& model) { return model.model == load.model; });
      if (known == all.models.end()) {
        all.models.push_back(load);
      } else {
        known->waiting = add(known->waiting, load.waiting);
        known->running = add(known->running, load.running);
      }
    }
  }
}

void join_progress(EngineFacts& all, const std::vector<EngineFacts>& pages) {
  all.progress = 0;
  all.process_start_s = 0;
  for (const EngineFacts& page : pages) {
    all.pages.push_back({page.process_start_s, page.progress, page.progress_series});
    all.progress += page.progress;  // NaN where one is
    all.progress_series += page.progress_series;
    // The newest: another start of any rank is later than all before.
    all.process_start_s = std::isnan(all.process_start_s) || std::isnan(page.process_start_s)
                              ? std::numeric_limits<double>::quiet_NaN()
                              : std::max(all.process_start_s, page.process_start_s);
  }
}

}  // namespace

EngineFacts join_facts(std::vector<EngineFacts> pages) {
  if (pages.empty()) return {};
  if (pages.size() == 1) return std::move(pages.front());
  EngineFacts all;
  all.waiting = 0;
  all.running = 0;
  for (const EngineFacts& page : pages) {
    all.waiting = add(all.waiting, page.waiting);
    all.running = add(all.running, page.running);
    all.ranks += page.ranks;
  }
  join_kv_use(all, pages);
  join_capacity(all, pages);
  join_adapters(all, pages);
  join_models(all, pages);
  join_progress(all, pages);
  return all;
}

}  // namespace pickd::scrape

// Reference (a): a map from block hash to the endpoints that hold it, an LRU list of hashes per
// endpoint, one mutex around all of it. The family of the Gateway API inference extension's prefix
// plugin.
#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tools/bench/store_subject.hpp"

namespace pickd::bench {
namespace {

class LockedLru : public StoreSubject {
 public:
  explicit LockedLru(std::uint32_t endpoints) : base_bytes_(heap_bytes()), lists_(endpoints) {}

  void match(const StorePrompt& prompt, std::uint64_t, std::span<std::uint32_t> blocks,
             std::uint32_t) override {
    const std::lock_guard lock(mutex_);
    std::fill(blocks.begin(), blocks.end(), 0);
    std::uint32_t depth = 0;
    for (const std::uint64_t key : prompt.keys) {
      const auto at = holders_.find(key);
      if (at == holders_.end()) return;
      bool any = false;
      for (const std::uint16_t endpoint : at->second) {
        if (blocks[endpoint] != depth) continue;
        ++blocks[endpoint];
        any = true;
      }
      if (!any) return;
      ++depth;
    }
  }

  void insert(const StorePrompt& prompt, std::uint32_t endpoint, std::uint64_t tick) override {
    const std::lock_guard lock(mutex_);
    List& list = lists_[endpoint];
    for (const std::uint64_t key : prompt.keys) {
      const auto at = list.places.find(key);
      if (at != list.places.end()) {
        at->second->tick = tick;
        list.recent.splice(list.recent.begin(), list.recent, at->second);
        continue;
      }
      list.recent.push_front({key, tick});
      list.places.emplace(key, list.recent.begin());
      holders_[key].push_back(static_cast<std::uint16_t>(endpoint));
      ++entries_;
    }
  }

  StoreEviction maintain(std::uint64_t tick, std::uint64_t ttl_ticks) override {
    return evict_before(tick > ttl_ticks ? tick - ttl_ticks : 0);
  }

  StoreEviction evict_before(std::uint64_t tick) override {
    const std::lock_guard lock(mutex_);
    StoreEviction eviction;
    for (std::uint32_t endpoint = 0; endpoint < lists_.size(); ++endpoint) {
      List& list = lists_[endpoint];
      while (!list.recent.empty() && list.recent.back().tick < tick) {
        const std::uint64_t key = list.recent.back().key;
        list.places.erase(key);
        list.recent.pop_back();
        const auto at = holders_.find(key);
        std::vector<std::uint16_t>& holders = at->second;
        holders.erase(
            std::find(holders.begin(), holders.end(), static_cast<std::uint16_t>(endpoint)));
        if (holders.empty()) holders_.erase(at);
        ++eviction.entries;
        --entries_;
      }
    }
    return eviction;
  }

  std::uint64_t entries() override { return entries_; }
  std::uint64_t bytes() override { return heap_bytes() - base_bytes_; }

 private:
  struct Recent {
    std::uint64_t key;
    std::uint64_t tick;
  };
  struct List {
    std::list<Recent> recent;
    std::unordered_map<std::uint64_t, std::list<Recent>::iterator> places;
  };

  std::uint64_t base_bytes_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<std::uint16_t>> holders_;
  std::vector<List> lists_;
  std::uint64_t entries_ = 0;
};

}  // namespace

std::unique_ptr<StoreSubject> make_locked_lru(std::uint32_t endpoints) {
  return std::make_unique<LockedLru>(endpoints);
}

}  // namespace pickd::bench

// Reference (c): a path-compressed tree of block hashes, each node with the endpoints that hold it
// and how much of its run; a lookup table per endpoint from hash to node, without which a single
// block could not be removed; ages in a heap of timers beside a map. The family of Dynamo's
// indexers, in the containers of the standard library; with open-addressed tables instead its
// inserts are about three times as fast.
#include <algorithm>
#include <memory>
#include <mutex>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/bench/store_subject.hpp"

namespace pickd::bench {
namespace {

class HashRadix : public StoreSubject {
 public:
  HashRadix(std::uint32_t endpoints, bool with_ttl)
      : with_ttl_(with_ttl), base_bytes_(heap_bytes()), lookups_(endpoints), timers_(endpoints) {}

  void match(const StorePrompt& prompt, std::uint64_t, std::span<std::uint32_t> blocks,
             std::uint32_t) override {
    const std::lock_guard lock(mutex_);
    std::fill(blocks.begin(), blocks.end(), 0);
    Node* node = &root_;
    std::uint32_t at = 0;
    while (at < prompt.keys.size()) {
      const auto child = node->children.find(prompt.keys[at]);
      if (child == node->children.end()) return;
      node = child->second.get();
      const std::uint32_t same = common(node->run, prompt.keys.subspan(at));
      bool any = false;
      for (const Holder& holder : node->holders) {
        if (blocks[holder.endpoint] != at) continue;
        blocks[holder.endpoint] = at + std::min(holder.covered, same);
        any |= holder.covered >= same;
      }
      if (!any || same < node->run.size()) return;
      at += same;
    }
  }

  void insert(const StorePrompt& prompt, std::uint32_t endpoint, std::uint64_t tick) override {
    const std::lock_guard lock(mutex_);
    Node* node = &root_;
    std::span<const std::uint64_t> rest = prompt.keys;
    while (!rest.empty()) {
      std::unique_ptr<Node>& child = node->children[rest[0]];
      if (child == nullptr) {
        child = std::make_unique<Node>();
        child->parent = node;
        child->run.assign(rest.begin(), rest.end());
      }
      const std::uint32_t same = common(child->run, rest);
      if (same < child->run.size() && same < rest.size()) split(*child, same);
      cover(*child, endpoint, same, tick);
      node = child.get();
      rest = rest.subspan(same);
    }
  }

  StoreEviction maintain(std::uint64_t tick, std::uint64_t ttl_ticks) override {
    return evict_before(tick > ttl_ticks ? tick - ttl_ticks : 0);
  }

  StoreEviction evict_before(std::uint64_t tick) override {
    const std::lock_guard lock(mutex_);
    StoreEviction eviction;
    for (std::uint32_t endpoint = 0; endpoint < lookups_.size(); ++endpoint) {
      if (with_ttl_) {
        expire(endpoint, tick, eviction);
        continue;
      }
      std::vector<std::uint64_t> all;
      for (const auto& [key, node] : lookups_[endpoint]) all.push_back(key);
      for (const std::uint64_t key : all) eviction.entries += remove(key, endpoint);
    }
    return eviction;
  }

  std::uint64_t entries() override {
    std::uint64_t count = 0;
    for (const auto& lookup : lookups_) count += lookup.size();
    return count;
  }
  std::uint64_t bytes() override { return heap_bytes() - base_bytes_; }

 private:
  struct Holder {
    std::uint32_t endpoint;
    std::uint32_t covered;  // leading hashes of the run that it holds
  };
  struct Node {
    std::vector<std::uint64_t> run;
    Node* parent = nullptr;
    std::unordered_map<std::uint64_t, std::unique_ptr<Node>> children;
    std::vector<Holder> holders;
  };
  struct Timer {
    std::uint64_t tick;
    std::uint64_t key;
    bool operator>(const Timer& other) const { return tick > other.tick; }
  };
  struct Timers {
    std::priority_queue<Timer, std::vector<Timer>, std::greater<>> heap;
    std::unordered_map<std::uint64_t, std::uint64_t> ticks;  // last use by key
  };

  static std::uint32_t common(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
    const auto [at, unused] = std::mismatch(
        a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
        b.begin());
    return static_cast<std::uint32_t>(at - a.begin());
  }

  void cover(Node& node, std::uint32_t endpoint, std::uint32_t length, std::uint64_t tick) {
    Holder* holder = nullptr;
    for (Holder& other : node.holders) {
      if (other.endpoint == endpoint) holder = &other;
    }
    if (holder == nullptr) holder = &node.holders.emplace_back(Holder{endpoint, 0});
    for (std::uint32_t at = holder->covered; at < length; ++at)
      lookups_[endpoint][node.run[at]] = &node;
    holder->covered = std::max(holder->covered, length);
    if (!with_ttl_) return;
    Timers& timers = timers_[endpoint];
    for (std::uint32_t at = 0; at < length; ++at) {
      const bool is_new = timers.ticks.insert_or_assign(node.run[at], tick).second;
      if (is_new) timers.heap.push({tick, node.run[at]});
    }
  }

  // The lower part becomes a node of its own.
  void split(Node& node, std::uint32_t length) {
    auto lower = std::make_unique<Node>();
    lower->run.assign(node.run.begin() + length, node.run.end());
    node.run.resize(length);
    node.run.shrink_to_fit();
    lower->parent = &node;
    lower->children.swap(node.children);
    for (auto& [first, child] : lower->children) child->parent = lower.get();
    for (Holder& holder : node.holders) {
      if (holder.covered <= length) continue;
      const std::uint32_t below = holder.covered - length;
      lower->holders.push_back({holder.endpoint, below});
      holder.covered = length;
      for (std::uint32_t at = 0; at < below; ++at) {
        lookups_[holder.endpoint][lower->run[at]] = lower.get();
      }
    }
    const std::uint64_t first = lower->run[0];
    node.children.emplace(first, std::move(lower));
  }

  // A timer whose key was used since goes back with its new age.
  void expire(std::uint32_t endpoint, std::uint64_t tick, StoreEviction& eviction) {
    Timers& timers = timers_[endpoint];
    while (!timers.heap.empty() && timers.heap.top().tick < tick) {
      Timer timer = timers.heap.top();
      timers.heap.pop();
      const auto used = timers.ticks.find(timer.key);
      if (used == timers.ticks.end()) continue;
      if (used->second >= tick) {
        timer.tick = used->second;
        timers.heap.push(timer);
        continue;
      }
      timers.ticks.erase(used);
      eviction.entries += remove(timer.key, endpoint);
    }
  }

  std::uint64_t remove(std::uint64_t key, std::uint32_t endpoint) {
    const auto found = lookups_[endpoint].find(key);
    if (found == lookups_[endpoint].end()) return 0;
    Node* node = found->second;
    lookups_[endpoint].erase(found);
    const auto at = static_cast<std::uint32_t>(std::find(node->run.begin(), node->run.end(), key) -
                                               node->run.begin());
    for (std::size_t i = 0; i < node->holders.size(); ++i) {
      Holder& holder = node->holders[i];
      if (holder.endpoint != endpoint) continue;
      // What lies behind is out of reach; its own removal finds nothing to do any more.
      for (std::uint32_t behind = at + 1; behind < holder.covered; ++behind) {
        dropped_ += lookups_[endpoint].erase(node->run[behind]);
      }
      holder.covered = std::min(holder.covered, at);
      if (holder.covered == 0) {
        node->holders[i] = node->holders.back();
        node->holders.pop_back();
      }
      break;
    }
    while (node != &root_ && node->holders.empty() && node->children.empty()) {
      Node* parent = node->parent;
      parent->children.erase(node->run[0]);
      node = parent;
    }
    return 1 + std::exchange(dropped_, 0);
  }

  bool with_ttl_;
  std::uint64_t base_bytes_;
  std::mutex mutex_;
  Node root_;
  std::vector<std::unordered_map<std::uint64_t, Node*>> lookups_;
  std::vector<Timers> timers_;
  std::uint64_t dropped_ = 0;
};

}  // namespace

std::unique_ptr<StoreSubject> make_hash_radix(std::uint32_t endpoints, bool with_ttl) {
  return std::make_unique<HashRadix>(endpoints, with_ttl);
}

}  // namespace pickd::bench

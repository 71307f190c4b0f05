// Reference (b): a radix tree over the characters of the prompts, each node with the last use by
// every endpoint; eviction takes leaves by age from a heap. The family of SGLang's router and its
// descendants.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/bench/store_subject.hpp"

namespace pickd::bench {
namespace {

class CharRadix : public StoreSubject {
 public:
  CharRadix(std::uint32_t endpoints, std::uint32_t block_bytes)
      : block_bytes_(block_bytes), base_bytes_(heap_bytes()), endpoints_(endpoints) {}

  bool wants_text() const override { return true; }

  void match(const StorePrompt& prompt, std::uint64_t, std::span<std::uint32_t> blocks,
             std::uint32_t) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> matched(endpoints_, 0);
    Node* node = &root_;
    std::size_t at = 0;
    while (at < prompt.text.size()) {
      const auto child = node->children.find(prompt.text[at]);
      if (child == node->children.end()) break;
      node = child->second.get();
      const std::size_t same = common(node->text, prompt.text.substr(at));
      for (const Use& use : node->uses) {
        if (matched[use.endpoint] == at) matched[use.endpoint] = at + same;
      }
      at += same;
      if (same < node->text.size()) break;
    }
    for (std::uint32_t i = 0; i < endpoints_; ++i) {
      blocks[i] = static_cast<std::uint32_t>(matched[i] / block_bytes_);
    }
  }

  void insert(const StorePrompt& prompt, std::uint32_t endpoint, std::uint64_t tick) override {
    const std::lock_guard lock(mutex_);
    Node* node = &root_;
    std::string_view rest = prompt.text;
    while (!rest.empty()) {
      std::unique_ptr<Node>& child = node->children[rest[0]];
      if (child == nullptr) {
        child = std::make_unique<Node>();
        child->text.assign(rest);
        child->parent = node;
        touch(*child, endpoint, tick);
        return;
      }
      const std::size_t same = common(child->text, rest);
      if (same < child->text.size()) split(child, same);
      touch(*child, endpoint, tick);
      node = child.get();
      rest.remove_prefix(same);
    }
  }

  StoreEviction maintain(std::uint64_t tick, std::uint64_t ttl_ticks) override {
    // Its eviction looks at every leaf, so it runs now and then, not with every request.
    if (tick % (ttl_ticks / 8 + 1) != 0 || tick <= ttl_ticks) return {};
    return evict_before(tick - ttl_ticks);
  }

  StoreEviction evict_before(std::uint64_t tick) override {
    const std::lock_guard lock(mutex_);
    const std::uint64_t before = bytes_held_;
    using Aged = std::pair<std::uint64_t, Node*>;
    std::priority_queue<Aged, std::vector<Aged>, std::greater<>> leaves;
    std::vector<Node*> open{&root_};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (node->children.empty() && node != &root_) leaves.emplace(node->oldest(), node);
      for (auto& [first, child] : node->children) open.push_back(child.get());
    }
    while (!leaves.empty() && leaves.top().first < tick) {
      Node* node = leaves.top().second;
      leaves.pop();
      bytes_held_ -= node->text.size() *
                     std::erase_if(node->uses, [tick](const Use& use) { return use.tick < tick; });
      if (!node->uses.empty()) continue;
      Node* parent = node->parent;
      parent->children.erase(node->text[0]);
      if (parent->children.empty() && parent != &root_) leaves.emplace(parent->oldest(), parent);
    }
    return {(before - bytes_held_) / block_bytes_};
  }

  std::uint64_t entries() override { return bytes_held_ / block_bytes_; }
  std::uint64_t bytes() override { return heap_bytes() - base_bytes_; }

 private:
  struct Use {
    std::uint32_t endpoint;
    std::uint64_t tick;
  };
  struct Node {
    std::string text;
    Node* parent = nullptr;
    std::unordered_map<char, std::unique_ptr<Node>> children;
    std::vector<Use> uses;

    std::uint64_t oldest() const {
      std::uint64_t tick = ~std::uint64_t{0};
      for (const Use& use : uses) tick = std::min(tick, use.tick);
      return tick;
    }
  };

  static std::size_t common(std::string_view a, std::string_view b) {
    const std::size_t limit = std::min(a.size(), b.size());
    std::size_t at = 0;
    for (; at + 8 <= limit; at += 8) {
      if (std::memcmp(a.data() + at, b.data() + at, 8) != 0) break;
    }
    while (at < limit && a[at] == b[at]) ++at;
    return at;
  }

  void touch(Node& node, std::uint32_t endpoint, std::uint64_t tick) {
    for (Use& use : node.uses) {
      if (use.endpoint != endpoint) continue;
      use.tick = tick;
      return;
    }
    node.uses.push_back({endpoint, tick});
    bytes_held_ += node.text.size();
  }

  static void split(std::unique_ptr<Node>& at, std::size_t length) {
    auto upper = std::make_unique<Node>();
    upper->text = at->text.substr(0, length);
    upper->parent = at->parent;
    upper->uses = at->uses;
    at->text.erase(0, length);
    at->text.shrink_to_fit();
    at->parent = upper.get();
    const char first = at->text[0];
    upper->children.emplace(first, std::move(at));
    at = std::move(upper);
  }

  std::uint32_t block_bytes_;
  std::uint64_t base_bytes_;
  std::uint32_t endpoints_;
  std::mutex mutex_;
  Node root_;
  std::uint64_t bytes_held_ = 0;
};

}  // namespace

std::unique_ptr<StoreSubject> make_char_radix(std::uint32_t endpoints, std::uint32_t block_bytes) {
  return std::make_unique<CharRadix>(endpoints, block_bytes);
}

}  // namespace pickd::bench

// Hands the newest Topology to the workers without a lock and frees an old one when nobody looks at
// it.
//
// A worker announces the picture it uses in a slot of its own (a hazard pointer); the control
// thread keeps what is announced and deletes the rest of what it replaced.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "abi/limits.hpp"
#include "daemon/endpoints/topology.hpp"

namespace pickd::endpoints {

class TopologyStore {
 public:
  TopologyStore() : owned_(std::make_unique<const Topology>(std::vector<TopologyEndpoint>{})) {
    current_.store(owned_.get(), std::memory_order_seq_cst);
  }

  // The newest picture, kept alive until release(). One slot a reader thread; not nested.
  const Topology& acquire(std::uint32_t slot) {
    const Topology* seen = current_.load(std::memory_order_seq_cst);
    while (true) {
      // Store, then look again: partner is the store-then-scan of publish(). One of the two sees
      // the other, because all four accesses are sequentially consistent.
      slots_[slot].used.store(seen, std::memory_order_seq_cst);
      const Topology* now = current_.load(std::memory_order_seq_cst);
      if (now == seen) return *seen;
      seen = now;
    }
  }
  // The newest picture for a reader that holds `held`; one load when that still is the newest.
  // Acquire; partner: publish(). `held` is announced, so its address cannot be that of a newer one.
  const Topology& renew(std::uint32_t slot, const Topology& held) {
    return current_.load(std::memory_order_acquire) == &held ? held : acquire(slot);
  }
  void release(std::uint32_t slot) { slots_[slot].used.store(nullptr, std::memory_order_release); }

  // Control thread only.
  void publish(std::unique_ptr<const Topology> next) {
    current_.store(next.get(), std::memory_order_seq_cst);
    retired_.push_back(std::move(owned_));
    owned_ = std::move(next);
    reclaim();
  }
  const Topology& current() const { return *owned_; }  // control thread only

 private:
  void reclaim() {
    std::erase_if(retired_, [this](const std::unique_ptr<const Topology>& old) {
      for (const Slot& slot : slots_) {
        if (slot.used.load(std::memory_order_seq_cst) == old.get()) return false;
      }
      return true;
    });
  }

  struct alignas(abi::kLinePairBytes) Slot {
    std::atomic<const Topology*> used{nullptr};
  };
  std::atomic<const Topology*> current_{nullptr};
  std::unique_ptr<const Topology> owned_;
  std::vector<std::unique_ptr<const Topology>> retired_;
  Slot slots_[abi::kThreadsCountedMax];
};

}  // namespace pickd::endpoints

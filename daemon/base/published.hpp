// Published: hands the newest immutable T to reader threads without a lock and frees an old one
// when nobody looks at it.
//
// A reader announces what it uses in a slot of its own (a hazard pointer); the one writer keeps
// what is announced and deletes the rest of what it replaced.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pickd::base {

template <typename T, std::size_t kReaders>
class Published {
 public:
  explicit Published(std::unique_ptr<const T> first) : owned_(std::move(first)) {
    current_.store(owned_.get(), std::memory_order_seq_cst);
  }

  // The newest, kept alive until release(). One slot a reader thread; not nested.
  const T& acquire(std::uint32_t slot) {
    const T* seen = current_.load(std::memory_order_seq_cst);
    while (true) {
      // Store, then look again: partner is the store-then-scan of publish(). One of the two sees
      // the other, because all four accesses are sequentially consistent.
      slots_[slot].used.store(seen, std::memory_order_seq_cst);
      const T* now = current_.load(std::memory_order_seq_cst);
      if (now == seen) return *seen;
      seen = now;
    }
  }
  // The newest for a reader that holds `held`; one load when that still is the newest. Acquire;
  // partner: publish(). `held` is announced, so its address cannot be that of a newer one.
  const T& renew(std::uint32_t slot, const T& held) {
    return current_.load(std::memory_order_acquire) == &held ? held : acquire(slot);
  }
  void release(std::uint32_t slot) { slots_[slot].used.store(nullptr, std::memory_order_release); }

  // Writer thread only.
  void publish(std::unique_ptr<const T> next) {
    current_.store(next.get(), std::memory_order_seq_cst);
    retired_.push_back(std::move(owned_));
    owned_ = std::move(next);
    reclaim();
  }
  const T& current() const { return *owned_; }  // writer thread only

 private:
  void reclaim() {
    std::erase_if(retired_, [this](const std::unique_ptr<const T>& old) {
      for (const Slot& slot : slots_) {
        if (slot.used.load(std::memory_order_seq_cst) == old.get()) return false;
      }
      return true;
    });
  }

  struct alignas(128) Slot {
    std::atomic<const T*> used{nullptr};
  };
  std::atomic<const T*> current_{nullptr};
  std::unique_ptr<const T> owned_;
  std::vector<std::unique_ptr<const T>> retired_;
  Slot slots_[kReaders];
};

}  // namespace pickd::base

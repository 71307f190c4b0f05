// ReadyChannel: the place of the channel that came back last. One exchange takes it and one lays it
// back, where the pool's mutex would be taken and let go of twice. Knows who waits for a channel
// only as a number.
#pragma once

#include <atomic>
#include <cstdint>

namespace pickd::client {

class Channel;

class ReadyChannel {
 public:
  // nullptr: there is none.
  Channel* take() {
    if (place_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    // Sequentially consistent, with put() and the two below: see awaited(). Partner of put() too:
    // what its last user did with the channel is seen by the next.
    return place_.exchange(nullptr, std::memory_order_seq_cst);
  }
  // False: another lies there.
  bool put(Channel* channel) {
    Channel* none = nullptr;
    return place_.compare_exchange_strong(none, channel, std::memory_order_seq_cst,
                                          std::memory_order_relaxed);
  }

  // Who is about to sleep until a channel comes back says so, and then looks here once more; who
  // has put one here asks after that whether somebody sleeps. So one of the two sees the other.
  void announce_sleeper() { sleepers_.fetch_add(1, std::memory_order_seq_cst); }
  void dismiss_sleeper() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }
  // The look of who announced itself.
  bool filled() const { return place_.load(std::memory_order_seq_cst) != nullptr; }
  bool awaited() const { return sleepers_.load(std::memory_order_seq_cst) != 0; }

 private:
  std::atomic<Channel*> place_{nullptr};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace pickd::client

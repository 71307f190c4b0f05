// The client's ends of a channel's two rings. The layout is abi/channel_layout.hpp; who sleeps and
// who wakes whom is channel.hpp's business.
//
//   submissions   ....[record][record][padding ]|[record]....      written by this side
//                     head (daemon)              wrap     tail (this side)
//   completions   ....[record][record]....                        read by this side
//                     head (this side)  tail (daemon)
//
// Nothing in the shared memory is believed: indices and lengths are loaded once, checked, and a
// channel that breaks the rules is reported as broken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/channel_layout.hpp"
#include "abi/fence.hpp"

namespace pickd::client {

class SubmissionWriter {
 public:
  // The indices stand where the peer left them: 0 in a fresh channel.
  void attach(std::byte* ring, std::uint64_t ring_bytes, std::atomic<std::uint64_t>* shared_tail,
              const std::atomic<std::uint64_t>* shared_head) {
    ring_ = ring;
    ring_bytes_ = ring_bytes;
    shared_tail_ = shared_tail;
    shared_head_ = shared_head;
    tail_ = shared_tail->load(std::memory_order_relaxed);
    head_ = tail_;
    reserved_tail_ = tail_;
    if (tail_ % abi::kRingUnitBytes != 0) broken_ = true;
  }

  // Room for a record of `bytes`, contiguous, with `spare` bytes left behind it, or nullptr when
  // the ring is full (or broken()). Until publish() the daemon sees nothing of it.
  std::byte* reserve(std::uint64_t bytes, std::uint64_t spare) {
    const std::uint64_t need = abi::ring_units_bytes(bytes);
    const std::uint64_t at = tail_ & (ring_bytes_ - 1);
    const std::uint64_t to_end = ring_bytes_ - at;
    const std::uint64_t padding = to_end < need ? to_end : 0;
    if (!has_room(padding + need + spare)) return nullptr;
    if (padding != 0) {
      const abi::RecordHead head{static_cast<std::uint32_t>(padding), abi::RecordType::kPadding, 0,
                                 0, 0};
      std::memcpy(ring_ + at, &head, sizeof head);
    }
    reserved_tail_ = tail_ + padding + need;
    return ring_ + ((tail_ + padding) & (ring_bytes_ - 1));
  }

  // Shows the reserved record to the daemon. Partner: the worker's acquire load of submissions_tail
  // before it copies the record. The caller goes on with announce_then_check() and the bell.
  void publish() {
    tail_ = reserved_tail_;
    shared_tail_->store(tail_, abi::kAnnounceStore);
  }

  // The end of what was published, and of what the daemon has taken: a record is done with once
  // consumed() has reached the position() after it.
  std::uint64_t position() const { return tail_; }
  std::uint64_t consumed() {
    load_head();
    return head_;
  }
  std::uint64_t ring_bytes() const { return ring_bytes_; }
  bool broken() const { return broken_; }

  // Of a ring whose daemon is gone: calls `visit(head, record)` for each record that it had not
  // taken, and for the last one that it had: it may have died over it. What stood before is intact
  // as far back as the head that was seen last, because nothing is written above that.
  template <typename Visit>
  void each_lost(const Visit& visit) {
    const std::uint64_t taken = shared_head_->load(std::memory_order_acquire);
    std::uint64_t at = head_;
    while (at != tail_ && !broken_) {
      const std::uint64_t place = at & (ring_bytes_ - 1);
      abi::RecordHead head;
      std::memcpy(&head, ring_ + place, sizeof head);
      const std::uint64_t units = abi::ring_units_bytes(head.bytes);
      // The daemon could have written here too.
      if (head.bytes < sizeof head || units > tail_ - at || units > ring_bytes_ - place) return;
      at += units;
      // Unsigned: a head that was never there counts as behind all.
      if (head.type != abi::RecordType::kPadding && tail_ - at <= tail_ - taken)
        visit(head, ring_ + place);
    }
  }

 private:
  bool has_room(std::uint64_t bytes) {
    if (ring_bytes_ - (tail_ - head_) >= bytes) return !broken_;
    load_head();
    return !broken_ && ring_bytes_ - (tail_ - head_) >= bytes;
  }

  // Partner: the worker's release store of submissions_head after it has copied the record: what
  // this side writes there next cannot reach that copy.
  void load_head() {
    const std::uint64_t head = shared_head_->load(std::memory_order_acquire);
    if (tail_ - head > ring_bytes_ || head - head_ > tail_ - head_ ||
        head % abi::kRingUnitBytes != 0) {
      broken_ = true;
      return;
    }
    head_ = head;
  }

  std::byte* ring_ = nullptr;
  std::uint64_t ring_bytes_ = 0;
  std::atomic<std::uint64_t>* shared_tail_ = nullptr;
  const std::atomic<std::uint64_t>* shared_head_ = nullptr;
  std::uint64_t tail_ = 0;           // published
  std::uint64_t reserved_tail_ = 0;  // tail_ and the record being written
  std::uint64_t head_ = 0;           // the daemon's, as last seen
  bool broken_ = false;
};

// A record in the completion ring. `data` is shared memory: copy, then look.
struct CompletionRecord {
  abi::RecordHead head{};
  const std::byte* data = nullptr;
};

enum class ReadOutcome { kNone, kRecord, kBroken };

class CompletionReader {
 public:
  void attach(const std::byte* ring, std::uint64_t ring_bytes,
              std::atomic<std::uint64_t>* shared_head,
              const std::atomic<std::uint64_t>* shared_tail) {
    ring_ = ring;
    ring_bytes_ = ring_bytes;
    shared_head_ = shared_head;
    shared_tail_ = shared_tail;
    head_ = shared_head->load(std::memory_order_relaxed);
    shown_head_ = tail_ = head_;
    if (head_ % abi::kRingUnitBytes != 0) broken_ = true;
  }

  // The oldest record that was not taken yet; padding is stepped over. It stays until take().
  ReadOutcome next(CompletionRecord& record) {
    for (;;) {
      if (head_ == tail_ && empty()) return broken_ ? ReadOutcome::kBroken : ReadOutcome::kNone;
      if (broken_) return ReadOutcome::kBroken;
      const std::uint64_t at = head_ & (ring_bytes_ - 1);
      load_record_head(ring_ + at, record.head);
      const std::uint64_t units = abi::ring_units_bytes(record.head.bytes);
      if (record.head.bytes < sizeof(abi::RecordHead) || units > tail_ - head_ ||
          units > ring_bytes_ - at) {
        broken_ = true;
        return ReadOutcome::kBroken;
      }
      units_ = units;
      if (record.head.type != abi::RecordType::kPadding) {
        record.data = ring_ + at;
        return ReadOutcome::kRecord;
      }
      take();
    }
  }

  // Gives the room of the record that next() returned back. Partner: the worker's acquire load of
  // completions_head before it writes there.
  void take() {
    head_ += units_;
    show();
  }

  // The same, but the daemon sees it together with later ones: after a quarter of the ring. The
  // index stands on a line that the daemon reads with every answer; to write it each time would
  // fetch that line from the other core each time, for both sides. For channels with few answers
  // outstanding.
  void take_quietly() {
    head_ += units_;
    if (head_ - shown_head_ >= ring_bytes_ / 4) show();
  }

  // Looks at the daemon's index. Partner: the worker's store of completions_tail (kAnnounceStore)
  // after it has written the record. Also the "check" half of the sleep protocol.
  bool empty() {
    const std::uint64_t tail = shared_tail_->load(abi::kCheckLoad);
    if (tail - head_ > ring_bytes_ || tail - head_ < tail_ - head_ ||
        tail % abi::kRingUnitBytes != 0) {
      broken_ = true;
      return true;
    }
    tail_ = tail;
    return tail_ == head_;
  }
  bool broken() const { return broken_; }

 private:
  void show() {
    shown_head_ = head_;
    shared_head_->store(head_, std::memory_order_release);
  }
  // Each word once: the daemon could change it between a check and a use.
  static void load_record_head(const std::byte* from, abi::RecordHead& head) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(from);
    std::uint64_t copy[2];
    copy[0] = __atomic_load_n(&words[0], __ATOMIC_RELAXED);
    copy[1] = __atomic_load_n(&words[1], __ATOMIC_RELAXED);
    std::memcpy(&head, copy, sizeof head);
  }

  const std::byte* ring_ = nullptr;
  std::uint64_t ring_bytes_ = 0;
  std::atomic<std::uint64_t>* shared_head_ = nullptr;
  const std::atomic<std::uint64_t>* shared_tail_ = nullptr;
  std::uint64_t head_ = 0;
  std::uint64_t shown_head_ = 0;  // as published
  std::uint64_t tail_ = 0;        // the daemon's, as last seen
  std::uint64_t units_ = 0;       // of the record that next() returned
  bool broken_ = false;
};

}  // namespace pickd::client

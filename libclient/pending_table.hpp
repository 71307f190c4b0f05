// PendingTable: the picks of a queue that were submitted and not answered yet, found by sequence,
// listed in order of submission. A fixed number of slots, allocated once. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pickd::client {

enum class PendingState : std::uint8_t {
  kLive,       // its answer is awaited
  kCancelled,  // its answer is to be dropped
  kFailed,     // its channel is gone: it is to be answered without the daemon
  kAnswered,   // its channel is gone, and had its answer, which is kept in `record`
};

struct Pending {
  std::uint64_t sequence;
  std::uint64_t user_data;
  std::uint64_t
      cancel_position;    // of the submission ring behind its cancel record; 0: not written yet
  std::uint64_t hash_ns;  // what hashing its prompt took
  std::uint32_t answer_bytes;  // room in the completion ring that its answer may take
  PendingState state;
  bool answered;  // a cancelled one whose answer came before its cancel record could be written
  bool late;      // cancelled because its deadline had passed
  std::uint64_t deadline_ns;  // 0: none

  // A copy of its pick record, or its answer; stays with the slot and grows when it must.
  std::byte* record;
  std::uint32_t record_capacity;

  Pending* next_in_bucket;  // also links the free slots
  Pending* before;
  Pending* after;
};

class PendingTable {
 public:
  PendingTable() = default;
  PendingTable(const PendingTable&) = delete;
  PendingTable& operator=(const PendingTable&) = delete;
  ~PendingTable();

  // 0 or -ENOMEM.
  int make(std::uint32_t depth);
  // A new live entry, or nullptr when all slots are taken.
  Pending* add(std::uint64_t sequence);
  // Makes room for a record of so many bytes in `pending`. False when memory is out.
  static bool reserve(Pending* pending, std::uint64_t bytes);
  Pending* find(std::uint64_t sequence) const;
  void remove(Pending* pending);
  Pending* oldest() const { return oldest_; }
  std::uint32_t count() const { return count_; }
  bool full() const { return free_ == nullptr; }

 private:
  Pending*& bucket(std::uint64_t sequence) const {
    // Sequences of a client are dense and shared by its queues: the low bits spread them well.
    return buckets_[sequence & bucket_mask_];
  }

  Pending* slots_ = nullptr;
  std::uint32_t depth_ = 0;
  std::uint32_t count_ = 0;  // taken slots
  Pending** buckets_ = nullptr;
  std::uint64_t bucket_mask_ = 0;
  Pending* free_ = nullptr;
  Pending* oldest_ = nullptr;
  Pending* newest_ = nullptr;
};

}  // namespace pickd::client

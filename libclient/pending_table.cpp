// PendingTable: see pending_table.hpp.
#include "libclient/pending_table.hpp"

#include <errno.h>
#include <stdlib.h>

namespace pickd::client {

PendingTable::~PendingTable() {
  for (std::uint32_t i = 0; i < depth_; ++i) ::free(slots_[i].record);
  ::free(slots_);
  ::free(buckets_);
}

int PendingTable::make(std::uint32_t depth) {
  std::uint64_t bucket_count = 1;
  while (bucket_count < depth) bucket_count *= 2;
  slots_ = static_cast<Pending*>(::calloc(depth, sizeof(Pending)));
  buckets_ = static_cast<Pending**>(::calloc(bucket_count, sizeof(void*)));
  if (slots_ == nullptr || buckets_ == nullptr) return -ENOMEM;
  depth_ = depth;
  bucket_mask_ = bucket_count - 1;
  for (std::uint32_t i = 0; i < depth; ++i) {
    slots_[i].next_in_bucket = free_;
    free_ = &slots_[i];
  }
  return 0;
}

Pending* PendingTable::add(std::uint64_t sequence) {
  Pending* pending = free_;
  if (pending == nullptr) return nullptr;
  free_ = pending->next_in_bucket;
  *pending = {sequence,
              0,
              0,
              0,
              0,
              PendingState::kLive,
              false,
              false,
              0,
              pending->record,
              pending->record_capacity,
              bucket(sequence),
              newest_,
              nullptr};
  bucket(sequence) = pending;
  (newest_ == nullptr ? oldest_ : newest_->after) = pending;
  newest_ = pending;
  ++count_;
  return pending;
}

bool PendingTable::reserve(Pending* pending, std::uint64_t bytes) {
  if (pending->record_capacity >= bytes) return true;
  ::free(pending->record);
  pending->record = static_cast<std::byte*>(::malloc(bytes));
  pending->record_capacity = pending->record == nullptr ? 0 : static_cast<std::uint32_t>(bytes);
  return pending->record != nullptr;
}

Pending* PendingTable::find(std::uint64_t sequence) const {
  Pending* pending = bucket(sequence);
  while (pending != nullptr && pending->sequence != sequence) pending = pending->next_in_bucket;
  return pending;
}

void PendingTable::remove(Pending* pending) {
  Pending** link = &bucket(pending->sequence);
  while (*link != pending) link = &(*link)->next_in_bucket;
  *link = pending->next_in_bucket;
  (pending->before == nullptr ? oldest_ : pending->before->after) = pending->after;
  (pending->after == nullptr ? newest_ : pending->after->before) = pending->before;
  pending->next_in_bucket = free_;
  free_ = pending;
  --count_;
}

}  // namespace pickd::client

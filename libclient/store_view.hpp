// StoreView: the tables of a mapped state segment that a pick without the daemon reads: endpoint
// records, routing snapshot, prefix words, and the clock they are measured with.
//
// Places and sizes are copied out of the header and checked once. What lies there may change at any
// moment, and after the daemon's death it may be half-written: each word is loaded once and judged
// by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/state_layout.hpp"

namespace pickd::client {

class StoreView {
 public:
  // False when the header's places lie outside of the segment. True and not usable() when the
  // header names no tables at all.
  bool attach(const void* base, std::size_t bytes, const abi::StateHeader& header);
  bool usable() const { return records_ != nullptr; }

  std::uint32_t endpoint_ids() const { return endpoint_ids_; }
  const abi::EndpointRecord& endpoint(std::uint32_t id) const { return records_[id]; }

  // Whether the record is still that of an endpoint of this name and address: not when it is being
  // written at this moment, or was given to another one.
  bool is_called(std::uint32_t id, const void* name, std::size_t name_bytes, const void* address,
                 std::size_t address_bytes) const;

  // The eight words of line `line`, below lines().
  const abi::Word* line(std::uint64_t line) const { return words_ + line * abi::kWordsPerLine; }
  std::uint64_t lines() const { return lines_; }
  std::uint32_t blocks_min() const { return blocks_min_; }
  std::uint32_t blocks_max() const { return blocks_max_; }
  std::uint32_t ttl_ticks() const { return ttl_ticks_; }
  std::uint64_t instance_id() const { return instance_id_; }

  std::uint64_t tick() const;
  std::uint32_t global_horizon() const {
    return static_cast<std::uint32_t>(header_->global_horizon.load(std::memory_order_acquire)) &
           abi::kStampMask;
  }
  // Since the daemon's last sign of life, by the machine's clock.
  std::uint64_t silent_ns() const;
  // False once the daemon has been silent for so long that the 20 bits of a stamp may have wrapped:
  // nobody swept meanwhile, and the oldest words would be taken for young ones.
  bool stamps_are_sound() const;

  // The newest whole routing snapshot: its version (even, 0 = there is none), and a copy of its
  // bytes into `to`, which holds routing_bytes(). The size of the copy is 0 when it is empty or was
  // overwritten meanwhile.
  std::uint64_t routing_version() const {
    return header_->routing_version.load(std::memory_order_acquire) & ~1ULL;
  }
  std::uint64_t routing_bytes() const { return routing_bytes_; }
  std::uint64_t copy_routing(std::uint64_t version, std::byte* to) const;

 private:
  const abi::StateHeader* header_ = nullptr;
  const abi::EndpointRecord* records_ = nullptr;
  const abi::Word* words_ = nullptr;
  const std::byte* routing_ = nullptr;
  std::uint64_t routing_bytes_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t tick_base_ns_ = 0;
  std::uint64_t tick_ns_ = 0;
  std::uint64_t instance_id_ = 0;
  std::uint32_t endpoint_ids_ = 0;
  std::uint32_t blocks_min_ = 0;
  std::uint32_t blocks_max_ = 0;
  std::uint32_t ttl_ticks_ = 0;
  bool virtual_clock_ = false;
};

}  // namespace pickd::client

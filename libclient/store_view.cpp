// StoreView: see store_view.hpp.
#include "libclient/store_view.hpp"

#include <string.h>

#include "libclient/deadline.hpp"

namespace pickd::client {

namespace {

// As in the daemon: the longest TTL that the stamp's 20 bits allow.
constexpr std::uint64_t kTtlTicksMax = 12ULL * 3600 * 20;
// The sweep restamps confirmed words before half a wrap; with this the sum stays below 7/8.
constexpr std::uint64_t kSilentTicksMax = (3ULL << abi::kStampBits) / 8;
constexpr std::uint64_t kAgeTicksMax = (7ULL << abi::kStampBits) / 8;

bool lies_inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t alignment,
                 std::uint64_t segment_bytes) {
  return offset % alignment == 0 && offset <= segment_bytes && bytes <= segment_bytes - offset;
}

// Whether `words` hold `text` with a zero behind it.
bool holds_text(const abi::Word (&words)[16], const void* text, std::size_t bytes) {
  char held[sizeof words];
  for (std::size_t at = 0; at < 16; ++at) {
    const std::uint64_t value = words[at].load(std::memory_order_relaxed);
    ::memcpy(held + at * sizeof value, &value, sizeof value);
  }
  return bytes < sizeof held && ::memcmp(held, text, bytes) == 0 && held[bytes] == '\0';
}

}  // namespace

bool StoreView::attach(const void* base, std::size_t bytes, const abi::StateHeader& header) {
  const std::uint32_t ids = header.endpoint_ids;
  const std::uint64_t lines = header.prefix_lines;
  if (ids == 0 && lines == 0) return true;
  const std::uint64_t endpoints_offset = header.endpoints_offset;
  const std::uint64_t routing_offset = header.routing_offset;
  const std::uint64_t prefix_offset = header.prefix_offset;
  const std::uint64_t ttl = header.ttl_ticks;
  routing_bytes_ = header.routing_bytes;
  tick_base_ns_ = header.tick_base_ns;
  tick_ns_ = header.tick_ns;
  instance_id_ = header.instance_id;
  blocks_min_ = header.blocks_min;
  blocks_max_ = header.blocks_max;
  virtual_clock_ = header.clock_mode == static_cast<std::uint32_t>(abi::ClockMode::kVirtual);
  ttl_ticks_ = static_cast<std::uint32_t>(ttl == 0 || ttl > kTtlTicksMax ? kTtlTicksMax : ttl);

  if (ids > abi::kEndpointIdsMax || lines < 2 || lines % 2 != 0 || lines > (1ULL << 32) ||
      tick_ns_ == 0 || routing_bytes_ > bytes / 2 ||
      !lies_inside(endpoints_offset, std::uint64_t{ids} * sizeof(abi::EndpointRecord),
                   alignof(abi::EndpointRecord), bytes) ||
      !lies_inside(routing_offset, 2 * routing_bytes_, sizeof(std::uint64_t), bytes) ||
      !lies_inside(prefix_offset, lines * abi::kWordsPerLine * sizeof(abi::Word),
                   abi::kCacheLineBytes, bytes)) {
    return false;
  }
  const auto* start = static_cast<const std::byte*>(base);
  header_ = &header;
  endpoint_ids_ = ids;
  lines_ = lines;
  records_ = reinterpret_cast<const abi::EndpointRecord*>(start + endpoints_offset);
  words_ = reinterpret_cast<const abi::Word*>(start + prefix_offset);
  routing_ = start + routing_offset;
  return true;
}

bool StoreView::is_called(std::uint32_t id, const void* name, std::size_t name_bytes,
                          const void* address, std::size_t address_bytes) const {
  const abi::EndpointRecord& record = records_[id];
  // Sequence lock; partner: write_text() in the daemon. No second try: the snapshot changes with
  // it.
  const std::uint32_t version = record.text_version.load(std::memory_order_acquire);
  const bool equal = version % 2 == 0 && holds_text(record.name, name, name_bytes) &&
                     holds_text(record.address, address, address_bytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  return equal && record.text_version.load(std::memory_order_relaxed) == version;
}

std::uint64_t StoreView::tick() const {
  if (virtual_clock_) return header_->virtual_tick.load(std::memory_order_acquire);
  const std::uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
  return now_ns < tick_base_ns_ ? 0 : (now_ns - tick_base_ns_) / tick_ns_;
}

std::uint64_t StoreView::silent_ns() const {
  const std::uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
  const std::uint64_t heartbeat_ns = header_->heartbeat_ns.load(std::memory_order_relaxed);
  return now_ns < heartbeat_ns ? 0 : now_ns - heartbeat_ns;
}

bool StoreView::stamps_are_sound() const {
  if (virtual_clock_) return true;  // it stands still while the daemon does
  const std::uint64_t silent_ticks = silent_ns() / tick_ns_;
  return silent_ticks < kSilentTicksMax && silent_ticks + ttl_ticks_ < kAgeTicksMax;
}

std::uint64_t StoreView::copy_routing(std::uint64_t version, std::byte* to) const {
  if (version == 0 || routing_bytes_ <= sizeof(std::uint64_t)) return 0;
  const std::byte* buffer = routing_ + ((version / 2) & 1) * routing_bytes_;
  std::uint64_t bytes;
  ::memcpy(&bytes, buffer, sizeof bytes);
  if (bytes > routing_bytes_ - sizeof bytes) return 0;
  ::memcpy(to, buffer + sizeof bytes, bytes);
  // The copy comes before this look. Partner: write_routing() makes the version odd before it
  // writes a buffer; this one is written again on the way to version + 4, which begins at version +
  // 3.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t now = header_->routing_version.load(std::memory_order_relaxed);
  return now - version <= 2 ? bytes : 0;
}

}  // namespace pickd::client

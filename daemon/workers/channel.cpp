#include "daemon/workers/channel.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "abi/fence.hpp"
#include "daemon/base/mappable_fd.hpp"
#include "daemon/base/untrusted.hpp"

namespace pickd::workers {

namespace {

constexpr std::uint32_t kColours = abi::kPageBytes / sizeof(abi::RingIndices);

// The lines of the answer come while the pick is decided: the client has read them, and a store
// that waits for one holds up those behind it. Not __builtin_prefetch(): without a flag for newer
// machines it fetches for reading, and the first store would ask the other core again.
void fetch_for_writing(std::byte* ring, std::uint64_t ring_bytes, std::uint64_t from) {
#if defined(__x86_64__)
  constexpr std::uint64_t kAnswerBytes =
      8 * abi::kCacheLineBytes;  // eight endpoints of short names
  for (std::uint64_t at = 0; at < kAnswerBytes; at += abi::kCacheLineBytes)
    asm volatile("prefetchw %0" : : "m"(ring[(from + at) & (ring_bytes - 1)]));
#else
  static_cast<void>(ring);
  static_cast<void>(ring_bytes);
  static_cast<void>(from);
#endif
}

struct Layout {
  std::uint64_t indices = abi::kPageBytes;
  std::uint64_t submissions = 2 * abi::kPageBytes;
  std::uint64_t completions = 0;
  std::uint64_t total = 0;
};

Layout lay_out(const ChannelParameters& parameters) {
  Layout layout;
  // Coloured: the index lines of many channels then spread over the cache's sets.
  layout.indices += (parameters.id % kColours) * sizeof(abi::RingIndices);
  layout.completions = layout.submissions + parameters.submissions_bytes;
  layout.total = layout.completions + parameters.completions_bytes;
  return layout;
}

base::Result<base::Fd> make_segment(std::uint64_t bytes) {
  base::Fd fd(::memfd_create("pickd-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return base::errno_error("channel: memfd_create");
  // Allocated now: a page that is missing later would be SIGBUS, in the daemon too.
  if (const int code = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); code != 0) {
    return base::Error{-code, std::string("channel: cannot be allocated: ") + std::strerror(code)};
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return base::errno_error("channel: cannot be sealed");
  }
  return fd;
}

void fill_header(std::byte* base, const ChannelParameters& parameters, const Layout& layout) {
  auto* header = new (base) abi::ChannelHeader{};
  header->segment.magic = abi::kChannelMagic;
  header->segment.layout_major = abi::kLayoutMajor;
  header->segment.layout_minor = abi::kLayoutMinor;
  header->segment.header_bytes = sizeof(abi::ChannelHeader);
  header->segment.total_bytes = layout.total;
  header->segment.byte_order_mark = abi::kByteOrderMark;
  header->segment.daemon_epoch = parameters.daemon_epoch;
  header->channel_id = parameters.id;
  header->worker = parameters.worker;
  header->indices_offset = layout.indices;
  header->submissions_offset = layout.submissions;
  header->submissions_bytes = parameters.submissions_bytes;
  header->completions_offset = layout.completions;
  header->completions_bytes = parameters.completions_bytes;
  header->keys_max = parameters.keys_max;
  header->segment.version.store(abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor),
                                std::memory_order_release);
}

}  // namespace

Channel::~Channel() = default;

std::uint64_t Channel::segment_bytes(const ChannelParameters& parameters) {
  return lay_out(parameters).total;
}

std::size_t Channel::record_bytes_max(std::uint32_t keys_max) {
  return abi::ring_units_bytes(sizeof(abi::PickRecord) + keys_max * sizeof(std::uint64_t) +
                               abi::kFieldBytesMax);
}

base::Result<std::unique_ptr<Channel>> Channel::create(const ChannelParameters& parameters,
                                                       ChannelDescriptors* descriptors) {
  std::unique_ptr<Channel> channel(new Channel());
  channel->parameters_ = parameters;
  const Layout layout = lay_out(parameters);
  auto segment = make_segment(layout.total);
  if (!segment) return segment.error();
  try {
    channel->region_ = std::make_unique<boost::interprocess::mapped_region>(
        base::MappableFd{segment->get()}, boost::interprocess::read_write, 0, layout.total);
  } catch (const boost::interprocess::interprocess_exception& failure) {
    return base::Error{-ENOMEM, std::string("channel: cannot be mapped: ") + failure.what()};
  }
  auto* base = static_cast<std::byte*>(channel->region_->get_address());
  channel->indices_ = new (base + layout.indices) abi::RingIndices{};
  channel->submissions_ = base + layout.submissions;
  channel->completions_ = base + layout.completions;
  fill_header(base, parameters, layout);

  channel->bell_ = base::Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!channel->bell_.valid()) return base::errno_error("channel: eventfd");
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return base::errno_error("channel: pipe");
  descriptors->pipe = base::Fd(ends[0]);
  channel->pipe_ = std::make_shared<WakePipe>(base::Fd(ends[1]));
  // one page: a wake is one byte
  ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(abi::kPageBytes));
  descriptors->bell = base::Fd(::fcntl(channel->bell_.get(), F_DUPFD_CLOEXEC, 0));
  if (!descriptors->bell.valid()) return base::errno_error("channel: dup");
  descriptors->segment = std::move(*segment);
  return channel;
}

Channel::Look Channel::take(std::span<std::byte> copy, std::size_t* bytes) {
  if (submissions_seen_ == submissions_head_) {
    // Acquire; partner: the client's release of the tail after it wrote the record.
    submissions_seen_ = indices().submissions_tail.load(std::memory_order_acquire);
    if (submissions_seen_ == submissions_head_) return Look::kNothing;
  }
  const std::uint64_t ring_bytes = parameters_.submissions_bytes;
  const base::Untrusted<std::uint64_t> waiting(submissions_seen_ - submissions_head_);
  const auto there = waiting.within(abi::kRingUnitBytes, ring_bytes);
  if (!there || *there % abi::kRingUnitBytes != 0) return Look::kBroken;

  const std::uint64_t place = submissions_head_ & (ring_bytes - 1);
  const std::byte* record = submissions_ + place;
  const std::uint64_t to_end = ring_bytes - place;
  const base::Untrusted<std::uint32_t> told(
      reinterpret_cast<const std::atomic<std::uint32_t>*>(record)->load(std::memory_order_relaxed));
  const std::uint64_t limit = std::min(*there, to_end);
  const auto length = told.within(sizeof(abi::RecordHead), static_cast<std::uint32_t>(limit));
  if (!length) return Look::kBroken;
  const std::uint64_t units = abi::ring_units_bytes(*length);
  if (units > limit) return Look::kBroken;

  abi::RecordHead head;
  std::memcpy(&head, record, sizeof head);
  if (head.type == abi::RecordType::kPadding) {
    // Fills the ring to its end and nothing else; what follows starts at the front.
    if (units != to_end) return Look::kBroken;
    *bytes = 0;
  } else {
    if (*length > copy.size()) return Look::kBroken;
    if (head.type == abi::RecordType::kPick)
      fetch_for_writing(completions_, parameters_.completions_bytes, completions_tail_);
    std::memcpy(copy.data(), record, *length);
    // The length stands in the record too and may have changed since: the checked one holds.
    std::memcpy(copy.data(), &*length, sizeof *length);
    *bytes = *length;
  }
  submissions_head_ += units;
  if (submissions_head_ != submissions_seen_) prefetch_next();
  // Release; partner: the client's acquire before it writes into this place again.
  indices().submissions_head.store(submissions_head_, std::memory_order_release);
  return Look::kRecord;
}

// The next record, while this one is worked on: its lines are in the client's core.
void Channel::prefetch_next() const {
  constexpr std::uint64_t kAheadBytes = 3 * abi::kRingUnitBytes;
  const std::uint64_t ring_bytes = parameters_.submissions_bytes;
  for (std::uint64_t at = 0; at < kAheadBytes; at += abi::kCacheLineBytes)
    __builtin_prefetch(submissions_ + ((submissions_head_ + at) & (ring_bytes - 1)));
}

std::span<const std::atomic<std::uint64_t>> Channel::look_ahead(std::size_t keys_max) const {
  if (submissions_head_ == submissions_seen_) return {};
  const std::uint64_t ring_bytes = parameters_.submissions_bytes;
  const std::uint64_t place = submissions_head_ & (ring_bytes - 1);
  // A whole unit of the ring is there, whatever stands in it.
  static_assert(sizeof(abi::PickRecord) <= abi::kRingUnitBytes);
  abi::PickRecord record;
  std::memcpy(&record, submissions_ + place, sizeof record);
  if (record.head.type != abi::RecordType::kPick) return {};
  const std::uint64_t keys_at = place + sizeof record;
  const std::uint64_t room = (ring_bytes - keys_at) / sizeof(std::uint64_t);
  const auto count = std::min<std::uint64_t>({record.key_count, keys_max, room});
  return {reinterpret_cast<const std::atomic<std::uint64_t>*>(submissions_ + keys_at),
          static_cast<std::size_t>(count)};
}

bool Channel::has_submissions(bool sleeping) const {
  const auto order = sleeping ? abi::kCheckLoad : std::memory_order_relaxed;
  return indices().submissions_tail.load(order) != submissions_head_;
}

bool Channel::put(std::span<const std::byte> record) {
  const std::uint64_t ring_bytes = parameters_.completions_bytes;
  const std::uint64_t units = abi::ring_units_bytes(record.size());
  const std::uint64_t place = completions_tail_ & (ring_bytes - 1);
  const std::uint64_t padding = place + units > ring_bytes ? ring_bytes - place : 0;
  const std::uint64_t needed = padding + units;
  if (completions_tail_ + needed - completions_seen_ > ring_bytes) {
    // Acquire; partner: the client's release of the head after it read a completion.
    completions_seen_ = indices().completions_head.load(std::memory_order_acquire);
    const base::Untrusted<std::uint64_t> held(completions_tail_ - completions_seen_);
    const auto used = held.at_most(ring_bytes);
    if (!used || *used + needed > ring_bytes) {
      completions_seen_ = completions_tail_ - ring_bytes;  // look again at the next put
      return false;
    }
  }
  if (padding != 0) {
    const abi::RecordHead head{static_cast<std::uint32_t>(padding), abi::RecordType::kPadding, 0, 0,
                               0};
    std::memcpy(completions_ + place, &head, sizeof head);
    completions_tail_ += padding;
  }
  std::memcpy(completions_ + (completions_tail_ & (ring_bytes - 1)), record.data(), record.size());
  completions_tail_ += units;
  // Announces: the client that is about to sleep looks at this after it set `waiting`.
  indices().completions_tail.store(completions_tail_, abi::kAnnounceStore);
  owes_wake_ = true;
  return true;
}

bool Channel::wake_client() {
  owes_wake_ = false;
  abi::announce_then_check();
  if (indices().completions_waiting.load(abi::kCheckLoad) == 0) return false;
  ring();
  return true;
}

bool Channel::wake_early() {
  // Relaxed: a 0 that is out of date is made good by wake_client() after the row.
  if (indices().completions_waiting.load(std::memory_order_relaxed) == 0) return false;
  owes_wake_ = false;
  ring();
  return true;
}

void Channel::ring() {
  WakeCosts* const costs = parameters_.rates == nullptr ? nullptr : &parameters_.rates->wakes;
  pipe_->ring(costs, parameters_.slow_wakes);
}

}  // namespace pickd::workers

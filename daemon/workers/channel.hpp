// The daemon's end of a channel: the shared segment, the private indices, the bells.
//
// Made by the control thread, then owned by one worker. Nothing the client writes is believed: each
// shared word is loaded once and checked, a record is copied before it is looked at, and the
// daemon's own state stands in private memory. A client that breaks the protocol breaks its channel
// and nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "abi/channel_layout.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/workers/rate_bucket.hpp"

namespace boost::interprocess {
class mapped_region;
}

namespace pickd::workers {

struct ChannelParameters {
  std::uint32_t id = 0;
  std::uint32_t worker = 0;
  std::uint32_t keys_max = abi::kKeysDefault;
  std::uint32_t submissions_bytes = abi::kSubmissionRingBytesDefault;
  std::uint32_t completions_bytes = abi::kCompletionRingBytesDefault;
  std::uint64_t client = 0;  // first half of its tickets
  std::uint32_t uid = 0;
  std::uint64_t daemon_epoch = 0;
  // of its user, shared with its other channels; none: no limit
  std::shared_ptr<UserRates> rates = {};
  Chores* slow_wakes = nullptr;  // outlives the channel; none: every wake is the worker's
};

// What the client gets; the control thread sends these and forgets them.
struct ChannelDescriptors {
  base::Fd segment;  // memfd, sealed: cannot shrink, grow or be unsealed
  base::Fd bell;     // eventfd: the client writes, the worker only polls it edge-triggered
  base::Fd pipe;     // read end: becomes readable when a sleeping client is woken
};

class Channel {
 public:
  static base::Result<std::unique_ptr<Channel>> create(const ChannelParameters& parameters,
                                                       ChannelDescriptors* descriptors);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // What a channel takes of memory.
  static std::uint64_t segment_bytes(const ChannelParameters& parameters);
  // The longest record a channel of `keys_max` keys may carry.
  static std::size_t record_bytes_max(std::uint32_t keys_max);

  enum class Look { kNothing, kRecord, kBroken };

  // Copies the next record into `copy` (at least record_bytes_max() long) and frees its place in
  // the ring. `bytes` is what its head says, checked against what is there.
  Look take(std::span<std::byte> copy, std::size_t* bytes);

  // The first keys, at most `keys_max`, of the pick that take() would copy next; empty where there
  // is none that was seen. In the client's memory, where they may change at any time: for fetching
  // ahead what they would need, and for nothing else.
  std::span<const std::atomic<std::uint64_t>> look_ahead(std::size_t keys_max) const;

  // True when a submission waits. `sleeping`: the check of the sleep protocol, after
  // announce_then_check().
  bool has_submissions(bool sleeping) const;

  // Publishes one completion. False: the client's ring has no room for it, or its index is broken.
  bool put(std::span<const std::byte> record);

  // Wakes the client when it sleeps; true when it did. To be called after the last put() of a row:
  // the fence in it waits until the records have left this core.
  bool wake_client();
  // The same without the fence, between the put()s of a row: a client that went to sleep before is
  // not left waiting for the rest. One that goes to sleep at this moment may be missed.
  bool wake_early();
  // Whether a put() was followed by neither.
  bool owes_wake() const { return owes_wake_; }

  int bell() const { return bell_.get(); }
  const ChannelParameters& parameters() const { return parameters_; }

 private:
  Channel() = default;
  abi::RingIndices& indices() const { return *indices_; }
  void ring();
  void prefetch_next() const;

  ChannelParameters parameters_;
  std::unique_ptr<boost::interprocess::mapped_region> region_;
  abi::RingIndices* indices_ = nullptr;
  std::byte* submissions_ = nullptr;
  std::byte* completions_ = nullptr;
  std::uint64_t submissions_head_ = 0;  // private; the shared copy is for the client
  std::uint64_t submissions_seen_ = 0;  // the tail at the last look
  std::uint64_t completions_tail_ = 0;
  std::uint64_t completions_seen_ = 0;  // the head at the last look
  bool owes_wake_ = false;              // published since the client was last woken or seen awake
  base::Fd bell_;
  std::shared_ptr<WakePipe> pipe_;
};

}  // namespace pickd::workers

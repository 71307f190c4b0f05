// StateView: the daemon's state segment, mapped read-only and checked.
//
// Nothing here writes. What is fixed when the file is made (sizes, the hash secret, key algorithms)
// is copied once and used from the copy, so that a broken daemon cannot make this library read out
// of bounds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/fence.hpp"
#include "abi/state_layout.hpp"
#include "libclient/fd.hpp"
#include "libclient/last_error.hpp"
#include "libclient/store_view.hpp"

namespace pickd::client {

class StateView {
 public:
  StateView() = default;
  StateView(const StateView&) = delete;
  StateView& operator=(const StateView&) = delete;
  ~StateView();

  // Maps and checks; the descriptor is not needed afterwards. -EPROTO: not a state segment of a
  // sane shape. -EPROTONOSUPPORT: another layout. Else a negative errno.
  int map(Fd descriptor, LastError& error);
  // Lets go of the mapping without unmapping it: for a forked child, where it does not exist.
  void abandon() { base_ = nullptr; }

  std::uint32_t block_tokens() const { return block_tokens_; }
  std::uint32_t keys_max() const { return keys_max_; }
  std::uint32_t workers() const { return workers_; }
  const std::uint8_t* hash_secret() const { return hash_secret_; }
  // The daemon's algorithm for this kind of prompt, or nullptr.
  const abi::KeyAlgorithm* algorithm(abi::KeyKind kind) const;

  // Whether worker `worker` (below workers()) sleeps. To be asked after announce_then_check(): the
  // partner is the worker, which stores `asleep` and then looks at the submission rings.
  bool asleep(std::uint32_t worker) const {
    return worker_words_[worker].asleep.load(abi::kCheckLoad) != 0;
  }
  // CLOCK_BOOTTIME of the daemon's last sign of life; its maintenance thread stores it.
  std::uint64_t heartbeat_ns() const {
    return header_->heartbeat_ns.load(std::memory_order_relaxed);
  }
  // Which life of the daemon writes this file. Not an atomic in the layout: it changes once a
  // start, and a hint is all that is made of it.
  std::uint64_t daemon_epoch() const {
    return __atomic_load_n(&header_->segment.daemon_epoch, __ATOMIC_RELAXED);
  }
  // Whether another file took this one's place. Relaxed: a hint; the kernel is asked next.
  bool superseded() const { return header_->superseded.load(std::memory_order_relaxed) != 0; }
  // What a pick without the daemon reads.
  const StoreView& store() const { return store_; }

 private:
  int check(LastError& error);

  void* base_ = nullptr;
  std::size_t bytes_ = 0;
  const abi::StateHeader* header_ = nullptr;
  const abi::WorkerWord* worker_words_ = nullptr;
  std::uint32_t block_tokens_ = 0;
  std::uint32_t keys_max_ = 0;
  std::uint32_t workers_ = 0;
  abi::KeyAlgorithm algorithms_[abi::kKeyAlgorithmsMax] = {};
  std::uint8_t hash_secret_[abi::kHashSecretBytes] = {};
  StoreView store_;
};

// Checks the first 64 bytes of any segment: magic, byte order, layout, features, sizes. 0, -EPROTO
// or
// -EPROTONOSUPPORT, with words.
int check_segment(const abi::SegmentHeader& segment, std::uint64_t magic,
                  std::uint64_t header_bytes_min, std::uint64_t file_bytes, LastError& error);

}  // namespace pickd::client

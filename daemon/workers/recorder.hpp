// Recorder: what one worker did, for whoever records it: an entry for each pick and each end, as
// abi/recording.hpp has them.
//
// The worker's thread puts, the control thread takes; neither waits for the other. An entry for
// which there is no room is left out and counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/pick/request.hpp"
#include "daemon/pick/result.hpp"
#include "daemon/workers/submission.hpp"

namespace pickd::workers {

class Recorder {
 public:
  // `words`: room, a power of two. `stride_blocks`: one key of so many blocks is kept.
  Recorder(std::size_t words, std::uint32_t stride_blocks);

  // Worker's thread. Neither allocates nor waits.
  void put_pick(const pick::PickRequest& request, const pick::PickResult& result);
  void put_end(const DecodedReport& report, std::uint64_t now_ns);

  // Control thread: moves whole entries to `to`, as many as fit; returns how many words.
  std::size_t take(std::span<std::uint64_t> to);
  void forget();  // all there is, for a new recording
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // The place of `words` more words, or false, which is counted.
  bool begin(std::size_t words);
  void put(const void* bytes, std::size_t words);
  void publish();

  std::vector<std::uint64_t> words_;
  std::size_t mask_;
  std::uint32_t stride_blocks_;
  std::uint64_t place_ = 0;  // of the worker: where it writes
  // Places count on without end; a word stands at its place modulo the room.
  alignas(64) std::atomic<std::uint64_t> filled_{0};  // stored by the worker, read by take()
  alignas(64) std::atomic<std::uint64_t> taken_{0};   // stored by take(), read by the worker
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace pickd::workers

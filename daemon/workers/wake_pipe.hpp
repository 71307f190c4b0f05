// WakePipe: the daemon's end of the pipe that wakes a client.
//
// A write never blocks, but it can be slow: it calls everybody who waits for the other end, and a
// client can make that tens of thousands. So a worker watches what its wakes cost; those of a user
// whose wakes stay slow are done by another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/base/fd.hpp"
#include "daemon/workers/chores.hpp"

namespace pickd::workers {

// Of one user, over all its channels and connections. Relaxed, all of it: hints.
struct WakeCosts {
  std::atomic<std::uint32_t> slow_in_a_row{0};
  std::atomic<bool> watched{false};  // one took long: the next is measured more closely
  std::atomic<bool> apart{false};    // done on another thread from now on
};

class WakePipe : public std::enable_shared_from_this<WakePipe> {
 public:
  explicit WakePipe(base::Fd write_end) : fd_(std::move(write_end)) {}

  // Writes a byte, now or by `apart`. `costs` and `apart` may be null: then now. The worker's
  // thread.
  void ring(WakeCosts* costs, Chores* apart);

 private:
  void write() const;
  void write_measured(WakeCosts& costs) const;

  base::Fd fd_;
  std::atomic<bool> posted_{false};  // a wake waits in `apart`: it will do for this one too
};

}  // namespace pickd::workers

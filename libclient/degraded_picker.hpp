// DegradedPicker: picks an endpoint without the daemon, from the mapped state segment.
//
// Candidates are the endpoints of the routing snapshot that serve the model and are ready, but for
// those that have had twice the mean of this client's recent picks: no prefix is so hot that all go
// to its home. The one with the longest prefix match and one other, drawn at random, are compared:
// the lower cost wins.
// Cost, in tokens: what is not cached there, what is in flight there as far as the daemon last
// knew, and what this client itself has put there since. So a prefix is not forgotten, and gateways
// that do not see each other do not all run to the same endpoint.
//
// Any thread; one at a time picks. Nothing is allocated after the first pick.
#pragma once

#include <atomic>
#include <cstdint>

#include "libclient/memory.hpp"
#include "libclient/mutex.hpp"
#include "libclient/pick_request.hpp"
#include "libclient/state_view.hpp"
#include "pickd/pickd.h"

namespace pickd::client {

class DegradedPicker {
 public:
  DegradedPicker();
  ~DegradedPicker();
  DegradedPicker(const DegradedPicker&) = delete;
  DegradedPicker& operator=(const DegradedPicker&) = delete;

  // Fills `result`: status, reason, flags and endpoints; the ticket is {client, sequence}. Returns
  // its status: 0, -ENOENT, -EHOSTUNREACH as pickd_pick(); -ENOTCONN when the segment knows no
  // endpoint, -ENOMEM; `result` is left alone with these two.
  int pick(const StateView& state, std::uint32_t keys_max, const PickRequest& request,
           pickd_ticket ticket, pickd_result& result);
  // The same for a pick record in private memory, as PickRequest::write() made it.
  int pick(const StateView& state, const std::byte* record, pickd_ticket ticket,
           pickd_result& result);

  // A report on a ticket of this client: true when it was picked here. Its prefill, or all of its
  // load, is gone, or counts on `endpoint` from now on.
  bool report(std::uint64_t sequence, pickd_report_kind kind, const pickd_slice& endpoint);

 private:
  struct Question;
  struct Memory;
  int answer(const StateView& state, const Question& question, pickd_ticket ticket,
             pickd_result& result);
  int gather(const StoreView& store, const Question& question, std::uint32_t state);
  std::uint64_t cost(const StoreView& store, const Question& question, std::uint32_t at,
                     bool load_is_known) const;
  static std::uint32_t match_tokens(const Question& question, std::uint32_t blocks);
  void find_room();
  std::uint32_t longest(std::uint32_t count);
  bool ready_memory(std::uint32_t keys);

  Mutex mutex_;
  Owned<Memory> memory_;
  std::uint64_t random_ = 0;
  std::atomic<bool> used_{false};  // relaxed: spares those who never were without a daemon the lock
};

}  // namespace pickd::client

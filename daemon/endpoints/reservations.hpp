// Reservations: what every picked request holds until it ends, in an open-addressed table keyed by
// ticket. The endpoints' in-flight counts are sums over these records and change only here.
//
// Any worker may call anything at any time: a record changes hands by compare-exchange of its state
// word, so each release happens once, whoever asks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "abi/state_layout.hpp"
#include "daemon/base/siphash.hpp"
#include "daemon/endpoints/flight_observer.hpp"
#include "daemon/endpoints/user_counts.hpp"

namespace pickd::endpoints {

struct Ticket {
  std::uint64_t client = 0;
  std::uint64_t sequence = 0;
};

struct NewReservation {
  Ticket ticket;
  std::uint64_t endpoint = 0;          // handle
  std::uint64_t prefill_endpoint = 0;  // handle, 0 = none
  std::uint64_t encode_endpoint = 0;   // the same
  std::uint32_t uncached_tokens = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t expected_output_tokens = 0;
  std::uint32_t uid = 0;
  std::uint64_t tick = 0;
  std::uint64_t now_ns = 0;            // of the store's clock, for the observer
  const FlightFacts* facts = nullptr;  // for the observer
};

// What became of a report.
enum class ReportOutcome {
  kApplied,
  kUnknownTicket,    // never seen, or ended already
  kOtherUser,        // the ticket belongs to another uid
  kStaleGeneration,  // ended now, but its endpoint's generation is gone: nothing was given back
};

class Reservations {
 public:
  // `per_user_max`: slots that one user may take, so that it leaves some for the others. `key`: of
  // the hash that says where a ticket may stand. Tickets are their owners' choice, and clients see
  // the table: who knew the hash could take all places of another's next tickets. So the key is
  // nobody's to read, and not in the state file; each daemon draws its own, and recover() moves
  // what another left.
  Reservations(abi::Reservation* slots, std::uint32_t slot_count, abi::EndpointRecord* records,
               std::uint32_t per_user_max = UINT32_MAX, base::SipKey key = {})
      : slots_(slots),
        mask_(slot_count - 1),
        records_(records),
        per_user_max_(per_user_max),
        key_(key),
        usages_(std::make_unique<Usage[]>(slot_count)) {}

  // Who is told of every change from now on; before anybody picks. Outlives the table's use.
  void observe(FlightObserver& observer) { observer_ = &observer; }

  // Takes a slot and adds the request and its uncached tokens to the endpoint. False: no slot free
  // among those a ticket may stand in, or the user has all it may take; nothing was added.
  bool reserve(const NewReservation& reservation);
  // Fetches the slot that reserve() looks at first, which is in no cache: slots are drawn by hash.
  void prefetch(Ticket ticket) const;

  // The first token came: the tokens are given back, the request stays. Applied once; again is
  // kApplied too, because a repeated first token is no fault.
  ReportOutcome first_token(Ticket ticket, std::uint32_t uid, std::uint64_t now_ns = 0);

  // Keeps what an engine told of the usage so far, until the end; not over a restart.
  ReportOutcome tell(Ticket ticket, std::uint32_t uid, const Usage& usage);

  // The request ended: all is given back. `endpoint`, when asked for, gets the handle that was
  // held; `usage` all that was told of it, by `how` and before.
  ReportOutcome end(Ticket ticket, std::uint32_t uid, std::uint64_t* endpoint = nullptr,
                    std::uint64_t now_ns = 0, const FlightEnd& how = {}, Usage* usage = nullptr);

  // Another endpoint serves it: what is held moves there. `from`, when asked for, gets the handle
  // that was held before.
  ReportOutcome move(Ticket ticket, std::uint32_t uid, std::uint64_t endpoint,
                     std::uint64_t* from = nullptr, std::uint64_t now_ns = 0);

  // Renews the lease of a request that lives.
  ReportOutcome touch(Ticket ticket, std::uint32_t uid, std::uint64_t tick);

  // The handle a live ticket holds; 0 when there is none.
  std::uint64_t holder(Ticket ticket) const;

  // Ends every reservation of a client of this uid; with `after_sequence` only those of later
  // sequences.
  std::uint32_t release_client(std::uint64_t client, std::uint32_t uid,
                               std::uint64_t after_sequence = 0);

  // Ends reservations older than `lease_ticks` among `count` slots from `*cursor`, which moves on.
  std::uint32_t expire_slice(std::uint32_t* cursor, std::uint32_t count, std::uint64_t tick,
                             std::uint64_t lease_ticks);

  // After a warm start, before anybody picks: puts each record where this key looks for it, counts
  // what is held again, frees what was half written and what belongs to a generation that is gone,
  // or to an id that is not below `endpoint_ids`. The counts of the endpoints must be zero. Returns
  // how many are held.
  std::uint64_t recover(std::uint32_t endpoint_ids);

  // How many this user holds now.
  std::uint32_t count_of_user(std::uint32_t uid) const { return users_.count(uid); }

  struct Owner {
    std::uint64_t client;
    std::uint32_t uid;
    bool operator==(const Owner&) const = default;
  };
  // Who holds anything, each once. Walks the table: for the start.
  std::vector<Owner> owners() const;

  std::uint32_t slot_count() const { return mask_ + 1; }
  std::uint64_t count_held() const;  // walks the table: for status only

 private:
  // The record of a ticket that `uid` holds (nothing: whoever holds it). `other_user` becomes true
  // when only others hold one.
  abi::Reservation* find(Ticket ticket, std::optional<std::uint32_t> uid, std::uint64_t* state,
                         bool* other_user) const;
  // Takes the held record with this state's tag for the caller alone; waits out another claim.
  // `state` becomes the word it had. False: it is held no more.
  static bool claim(abi::Reservation& slot, std::uint64_t* state);
  // Claims the record, gives back what it holds, frees it. `endpoint` gets the handle that was
  // held.
  bool release(abi::Reservation& slot, std::uint64_t state, std::uint64_t* endpoint, bool* stale,
               std::uint64_t now_ns = 0, FlightEnd how = {}, Usage* usage = nullptr);
  std::uint32_t flight_of(const abi::Reservation& slot) const {
    return static_cast<std::uint32_t>(&slot - slots_);
  }
  std::uint64_t hash_of(Ticket ticket) const {
    return base::siphash(key_, ticket.client, ticket.sequence);
  }
  bool move_home(abi::Reservation& old);
  void tell_recovered(const abi::Reservation& slot, std::uint32_t flags);

  abi::Reservation* slots_;
  std::uint32_t mask_;
  abi::EndpointRecord* records_;
  std::uint32_t per_user_max_;
  base::SipKey key_;
  UserCounts users_;
  // By slot, of those of which something was told; changed by who has claimed the record.
  std::unique_ptr<Usage[]> usages_;
  FlightObserver* observer_ = nullptr;
};

}  // namespace pickd::endpoints

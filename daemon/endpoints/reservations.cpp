#include "daemon/endpoints/reservations.hpp"

#include <algorithm>

#include "abi/fence.hpp"
#include "daemon/endpoints/count_word.hpp"

namespace pickd::endpoints {

namespace {

// State word: [ state : 2 ][ flags : 6 ][ tag of the ticket : 56 ].
constexpr std::uint64_t kTagMask = (1ULL << 56) - 1;
// How long to wait for another worker's claim: a few stores, or, when that worker lost its core in
// between, some tens of milliseconds. Giving up early would lose an end, and its load until the
// lease is over. Bounded all the same: a record may stay half written after a crash.
constexpr std::uint32_t kWritingLooks = 1 << 20;

constexpr std::uint64_t state_word(abi::ReservationState state, std::uint32_t flags,
                                   std::uint64_t tag) {
  return (static_cast<std::uint64_t>(state) << 62) |
         (static_cast<std::uint64_t>(flags & 0x3F) << 56) | (tag & kTagMask);
}
constexpr abi::ReservationState state_of(std::uint64_t word) {
  return static_cast<abi::ReservationState>(word >> 62);
}
constexpr std::uint32_t flags_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 56) & 0x3F;
}

constexpr std::uint32_t uncached_of(std::uint64_t tokens) {
  return static_cast<std::uint32_t>(tokens >> 32);
}
constexpr std::uint32_t uid_of(std::uint64_t owner) {
  return static_cast<std::uint32_t>(owner >> 32);
}

constexpr auto kRelaxed = std::memory_order_relaxed;

// The last of a record's six flags, which nobody else reads: the daemon that set it keeps what was
// told of the usage. One that comes after it finds the flag, and that nothing was told.
constexpr std::uint32_t kUsageTold = 1U << 5;

ReportOutcome absent(bool other_user) {
  return other_user ? ReportOutcome::kOtherUser : ReportOutcome::kUnknownTicket;
}

// The state word once no other worker is at the record. Acquire; partner: the release of who
// filled, moved or freed it.
std::uint64_t settled(const abi::Reservation& slot) {
  std::uint64_t word = slot.state.load(std::memory_order_acquire);
  for (std::uint32_t turn = 0; turn < kWritingLooks; ++turn) {
    if (state_of(word) != abi::ReservationState::kWriting) break;
    abi::spin_pause();
    word = slot.state.load(std::memory_order_acquire);
  }
  return word;
}

// What a record puts on its endpoints. With a prefill endpoint the prompt is computed there, until
// the first token; what it fills is held by the endpoint that decodes, until the end. Who encodes
// carries a request until the first token, and no tokens.
struct Load {
  std::uint64_t endpoint;
  std::uint64_t prefill;  // 0: none, or done
  std::uint64_t encode;   // as in the record; its endpoint is 0: none, or done
  std::int64_t uncached;  // 0 after the first token
  std::int64_t prompt;
};

Load load_of(const abi::Reservation& slot, std::uint64_t state) {
  const bool before_token = (flags_of(state) & abi::kReservationFirstToken) == 0;
  const std::uint64_t tokens = slot.tokens.load(kRelaxed);
  const std::uint64_t stages = before_token ? slot.prefill_endpoint.load(kRelaxed) : 0;
  return {slot.endpoint.load(kRelaxed), abi::prefill_handle_of(stages), stages,
          before_token ? static_cast<std::int64_t>(uncached_of(tokens)) : 0,
          static_cast<std::int64_t>(tokens & 0xFFFFFFFF)};
}

// Adds (sign 1) or takes back (-1) what the endpoint that decodes carries; false when its
// generation is gone.
bool change_decode(abi::EndpointRecord* records, const Load& load, std::int64_t sign) {
  abi::EndpointRecord& record = records[abi::handle_endpoint(load.endpoint)];
  const std::uint32_t generation = abi::handle_generation(load.endpoint);
  const bool known = change_count(record.inflight_requests, generation, sign);
  if (load.prefill == 0 && load.uncached != 0)
    change_count(record.inflight_tokens, generation, sign * load.uncached);
  if (load.prompt != 0) change_count(record.inflight_prompts, generation, sign * load.prompt);
  return known;
}

// The same of the endpoint that encodes, if there is one.
void change_encode(abi::EndpointRecord* records, const Load& load, std::int64_t sign) {
  const std::uint32_t endpoint = abi::encode_endpoint_of(load.encode);
  if (endpoint == 0) return;
  abi::Word& requests = records[endpoint].inflight_requests;
  const std::uint32_t generation = abi::CountWord{requests.load(kRelaxed)}.generation();
  if (abi::is_encode_generation(load.encode, generation)) change_count(requests, generation, sign);
}

// The same of those that encode and prefill, if there are such.
void change_stages(abi::EndpointRecord* records, const Load& load, std::int64_t sign) {
  change_encode(records, load, sign);
  if (load.prefill == 0) return;
  abi::EndpointRecord& record = records[abi::handle_endpoint(load.prefill)];
  const std::uint32_t generation = abi::handle_generation(load.prefill);
  change_count(record.inflight_requests, generation, sign);
  if (load.uncached != 0) change_count(record.inflight_tokens, generation, sign * load.uncached);
}

// Whether the record is of this ticket and user; a hint while other workers are at it.
bool holds(const abi::Reservation& slot, const NewReservation& reservation) {
  return slot.client.load(kRelaxed) == reservation.ticket.client &&
         slot.sequence.load(kRelaxed) == reservation.ticket.sequence &&
         uid_of(slot.owner.load(kRelaxed)) == reservation.uid;
}

}  // namespace

bool Reservations::reserve(const NewReservation& reservation) {
  if (users_.count(reservation.uid) >= per_user_max_) return false;
  const std::uint64_t hash = hash_of(reservation.ticket);
  for (std::uint32_t probe = 0; probe < abi::kReservationProbes && probe <= mask_; ++probe) {
    abi::Reservation& slot = slots_[(hash + probe) & mask_];
    std::uint64_t seen = slot.state.load(kRelaxed);
    if (state_of(seen) != abi::ReservationState::kFree) {
      // Tickets can be seen by all in the mapped table. Who reserves those of another user, again
      // and again, must not fill all places that the owner's has: the way to a free one ends at the
      // first copy, and those behind it stay the owner's.
      if ((seen & kTagMask) == (hash & kTagMask) && holds(slot, reservation)) return false;
      continue;
    }
    // Claim, fill, publish. Partner of the release: the acquire in find() and expire_slice().
    if (!slot.state.compare_exchange_strong(seen,
                                            state_word(abi::ReservationState::kWriting, 0, hash),
                                            std::memory_order_acquire)) {
      continue;
    }
    slot.client.store(reservation.ticket.client, kRelaxed);
    slot.sequence.store(reservation.ticket.sequence, kRelaxed);
    slot.endpoint.store(reservation.endpoint, kRelaxed);
    slot.prefill_endpoint.store(
        abi::with_encode(reservation.prefill_endpoint, reservation.encode_endpoint), kRelaxed);
    slot.tokens.store(
        (static_cast<std::uint64_t>(reservation.uncached_tokens) << 32) | reservation.prompt_tokens,
        kRelaxed);
    slot.owner.store(
        (static_cast<std::uint64_t>(reservation.uid) << 32) | reservation.expected_output_tokens,
        kRelaxed);
    slot.picked_tick.store(reservation.tick, kRelaxed);
    // Counts first: a release of this record, which needs it published, can then never come before.
    const Load load = load_of(slot, 0);
    change_decode(records_, load, 1);
    change_stages(records_, load, 1);
    users_.add(reservation.uid);
    if (observer_ != nullptr) observer_->began(flight_of(slot), reservation);
    slot.state.store(state_word(abi::ReservationState::kHeld, 0, hash), std::memory_order_release);
    return true;
  }
  return false;
}

void Reservations::prefetch(Ticket ticket) const {
  const abi::Reservation& slot = slots_[hash_of(ticket) & mask_];
  __builtin_prefetch(&slot, 1);
  if (observer_ != nullptr) observer_->expected(flight_of(slot));
}

abi::Reservation* Reservations::find(Ticket ticket, std::optional<std::uint32_t> uid,
                                     std::uint64_t* state, bool* other_user) const {
  const std::uint64_t hash = hash_of(ticket);
  for (std::uint32_t probe = 0; probe < abi::kReservationProbes && probe <= mask_; ++probe) {
    abi::Reservation& slot = slots_[(hash + probe) & mask_];
    if ((slot.state.load(kRelaxed) & kTagMask) != (hash & kTagMask)) continue;
    const std::uint64_t word = settled(slot);
    if (state_of(word) != abi::ReservationState::kHeld) continue;
    if (slot.client.load(kRelaxed) != ticket.client ||
        slot.sequence.load(kRelaxed) != ticket.sequence) {
      continue;
    }
    if (uid && uid_of(slot.owner.load(kRelaxed)) != *uid) {
      // A ticket can be seen by all in the mapped table: a copy of it, reserved by another user,
      // must not hide the owner's.
      *other_user = true;
      continue;
    }
    *state = word;
    return &slot;
  }
  return nullptr;
}

bool Reservations::claim(abi::Reservation& slot, std::uint64_t* state) {
  std::uint64_t expected = *state;
  std::uint32_t turns = 0;
  while (true) {
    if (state_of(expected) == abi::ReservationState::kHeld) {
      // A flag that another worker set in between is taken along. Acquire: what is held is read
      // after this.
      const std::uint64_t claimed =
          state_word(abi::ReservationState::kWriting, flags_of(expected), expected);
      *state = expected;
      if (slot.state.compare_exchange_weak(expected, claimed, std::memory_order_acq_rel))
        return true;
    } else {
      // Another worker moves it or ends it. Ended is not held any more.
      if (state_of(expected) != abi::ReservationState::kWriting || ++turns > kWritingLooks)
        return false;
      abi::spin_pause();
      expected = slot.state.load(std::memory_order_relaxed);
    }
    // A tag is a hash of the ticket: another one is another ticket's record.
    if ((expected & kTagMask) != (*state & kTagMask)) return false;
  }
}

bool Reservations::release(abi::Reservation& slot, std::uint64_t state, std::uint64_t* endpoint,
                           bool* stale, std::uint64_t now_ns, FlightEnd how, Usage* usage) {
  if (!claim(slot, &state)) return false;
  if ((flags_of(state) & kUsageTold) != 0) {
    Usage told = usages_[flight_of(slot)];
    told.update(how.usage);
    how.usage = told;
  }
  if (usage != nullptr) *usage = how.usage;
  const Load load = load_of(slot, state);
  const bool known = change_decode(records_, load, -1);
  change_stages(records_, load, -1);
  if (endpoint != nullptr) *endpoint = load.endpoint;
  if (stale != nullptr) *stale = !known;
  users_.sub(uid_of(slot.owner.load(kRelaxed)));
  if (observer_ != nullptr) observer_->ended(flight_of(slot), now_ns, how);
  slot.state.store(0, std::memory_order_release);
  return true;
}

ReportOutcome Reservations::first_token(Ticket ticket, std::uint32_t uid, std::uint64_t now_ns) {
  std::uint64_t state = 0;
  bool other_user = false;
  abi::Reservation* slot = find(ticket, uid, &state, &other_user);
  if (slot == nullptr) return absent(other_user);
  if ((flags_of(state) & abi::kReservationFirstToken) != 0) return ReportOutcome::kApplied;
  // Claimed, not only flagged: a move at the same time would leave the state word as it was, and
  // the tokens would be taken from the endpoint that held them before.
  if (!claim(*slot, &state)) return ReportOutcome::kUnknownTicket;
  bool known = true;
  if ((flags_of(state) & abi::kReservationFirstToken) == 0) {
    const Load load = load_of(*slot, state);
    change_stages(records_, load, -1);
    if (load.prefill == 0) {
      known = change_count(records_[abi::handle_endpoint(load.endpoint)].inflight_tokens,
                           abi::handle_generation(load.endpoint), -load.uncached);
    }
    if (observer_ != nullptr) observer_->first_token(flight_of(*slot), now_ns);
  }
  slot->state.store(state_word(abi::ReservationState::kHeld,
                               flags_of(state) | abi::kReservationFirstToken, state),
                    std::memory_order_release);
  return known ? ReportOutcome::kApplied : ReportOutcome::kStaleGeneration;
}

ReportOutcome Reservations::tell(Ticket ticket, std::uint32_t uid, const Usage& usage) {
  std::uint64_t state = 0;
  bool other_user = false;
  abi::Reservation* slot = find(ticket, uid, &state, &other_user);
  if (slot == nullptr) return absent(other_user);
  if (!claim(*slot, &state)) return ReportOutcome::kUnknownTicket;
  Usage& known = usages_[flight_of(*slot)];
  // Without the flag it is what an earlier request of this slot left.
  if ((flags_of(state) & kUsageTold) == 0) known = {};
  known.update(usage);
  slot->state.store(state_word(abi::ReservationState::kHeld, flags_of(state) | kUsageTold, state),
                    std::memory_order_release);
  return ReportOutcome::kApplied;
}

ReportOutcome Reservations::end(Ticket ticket, std::uint32_t uid, std::uint64_t* endpoint,
                                std::uint64_t now_ns, const FlightEnd& how, Usage* usage) {
  std::uint64_t state = 0;
  bool other_user = false;
  abi::Reservation* slot = find(ticket, uid, &state, &other_user);
  if (slot == nullptr) return absent(other_user);
  bool stale = false;
  if (!release(*slot, state, endpoint, &stale, now_ns, how, usage))
    return ReportOutcome::kUnknownTicket;
  return stale ? ReportOutcome::kStaleGeneration : ReportOutcome::kApplied;
}

ReportOutcome Reservations::move(Ticket ticket, std::uint32_t uid, std::uint64_t endpoint,
                                 std::uint64_t* from, std::uint64_t now_ns) {
  std::uint64_t state = 0;
  bool other_user = false;
  abi::Reservation* slot = find(ticket, uid, &state, &other_user);
  if (slot == nullptr) return absent(other_user);
  // Claimed while it moves, so that an end at the same time finds either the old or the new holder.
  if (!claim(*slot, &state)) return ReportOutcome::kUnknownTicket;
  Load load = load_of(*slot, state);
  const bool known = change_decode(records_, load, -1);
  if (from != nullptr) *from = load.endpoint;
  load.endpoint = endpoint;
  change_decode(records_, load, 1);
  slot->endpoint.store(endpoint, kRelaxed);
  if (observer_ != nullptr) observer_->moved(flight_of(*slot), endpoint, now_ns);
  // What the engine before told of its cache and its tokens is not of this one's answer.
  slot->state.store(state_word(abi::ReservationState::kHeld, flags_of(state) & ~kUsageTold, state),
                    std::memory_order_release);
  return known ? ReportOutcome::kApplied : ReportOutcome::kStaleGeneration;
}

ReportOutcome Reservations::touch(Ticket ticket, std::uint32_t uid, std::uint64_t tick) {
  std::uint64_t state = 0;
  bool other_user = false;
  abi::Reservation* slot = find(ticket, uid, &state, &other_user);
  if (slot == nullptr) return absent(other_user);
  slot->picked_tick.store(tick, kRelaxed);
  return ReportOutcome::kApplied;
}

std::uint64_t Reservations::holder(Ticket ticket) const {
  std::uint64_t state = 0;
  bool other_user = false;
  const abi::Reservation* slot = find(ticket, std::nullopt, &state, &other_user);
  return slot == nullptr ? 0 : slot->endpoint.load(kRelaxed);
}

std::uint32_t Reservations::release_client(std::uint64_t client, std::uint32_t uid,
                                           std::uint64_t after_sequence) {
  std::uint32_t released = 0;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    abi::Reservation& slot = slots_[at];
    const std::uint64_t state = settled(slot);
    if (state_of(state) != abi::ReservationState::kHeld || slot.client.load(kRelaxed) != client)
      continue;
    if (uid_of(slot.owner.load(kRelaxed)) != uid) continue;
    // Without a border all, sequence 0 too, which only a hostile client uses.
    if (after_sequence != 0 && slot.sequence.load(kRelaxed) <= after_sequence) continue;
    if (release(slot, state, nullptr, nullptr)) ++released;
  }
  return released;
}

std::uint32_t Reservations::expire_slice(std::uint32_t* cursor, std::uint32_t count,
                                         std::uint64_t tick, std::uint64_t lease_ticks) {
  std::uint32_t expired = 0;
  for (std::uint32_t step = 0; step < count; ++step, *cursor = (*cursor + 1) & mask_) {
    abi::Reservation& slot = slots_[*cursor];
    const std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state_of(state) != abi::ReservationState::kHeld) continue;
    const std::uint64_t picked = slot.picked_tick.load(kRelaxed);
    if (tick < picked || tick - picked <= lease_ticks) continue;
    if (release(slot, state, nullptr, nullptr)) ++expired;
  }
  return expired;
}

// Puts a held record where its ticket is looked for, and only then frees the place where it stood:
// a crash in between leaves it twice, and the next start finds the second. False: its places are
// taken.
bool Reservations::move_home(abi::Reservation& old) {
  const Ticket ticket{old.client.load(kRelaxed), old.sequence.load(kRelaxed)};
  const std::uint64_t hash = hash_of(ticket);
  const std::uint64_t flags = flags_of(old.state.load(kRelaxed));
  abi::Reservation* home = nullptr;
  for (std::uint32_t probe = 0; probe < abi::kReservationProbes && probe <= mask_; ++probe) {
    abi::Reservation& slot = slots_[(hash + probe) & mask_];
    const std::uint64_t state = slot.state.load(kRelaxed);
    if (state == 0 || &slot == &old) {
      if (home == nullptr) home = &slot;
      continue;
    }
    const bool twice = (state & kTagMask) == (hash & kTagMask) &&
                       slot.client.load(kRelaxed) == ticket.client &&
                       slot.sequence.load(kRelaxed) == ticket.sequence &&
                       uid_of(slot.owner.load(kRelaxed)) == uid_of(old.owner.load(kRelaxed));
    if (!twice) continue;
    old.state.store(0, kRelaxed);
    return true;
  }
  if (home == nullptr) return false;
  if (home != &old) {
    home->client.store(ticket.client, kRelaxed);
    home->sequence.store(ticket.sequence, kRelaxed);
    home->endpoint.store(old.endpoint.load(kRelaxed), kRelaxed);
    home->prefill_endpoint.store(old.prefill_endpoint.load(kRelaxed), kRelaxed);
    home->tokens.store(old.tokens.load(kRelaxed), kRelaxed);
    home->owner.store(old.owner.load(kRelaxed), kRelaxed);
    home->picked_tick.store(old.picked_tick.load(kRelaxed), kRelaxed);
  }
  // Release, though nobody else is there yet: the file must not show it before the words above.
  home->state.store(
      state_word(abi::ReservationState::kHeld, static_cast<std::uint32_t>(flags), hash),
      std::memory_order_release);
  if (home != &old) old.state.store(0, std::memory_order_release);
  return true;
}

std::uint64_t Reservations::recover(std::uint32_t endpoint_ids) {
  std::vector<abi::Reservation*> homeless;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    abi::Reservation& slot = slots_[at];
    const std::uint64_t state = slot.state.load(kRelaxed);
    if (state == 0) continue;
    const std::uint64_t stages = slot.prefill_endpoint.load(kRelaxed);
    const bool sound = state_of(state) == abi::ReservationState::kHeld &&
                       abi::handle_endpoint(slot.endpoint.load(kRelaxed)) < endpoint_ids &&
                       abi::handle_endpoint(stages) < endpoint_ids &&
                       abi::encode_endpoint_of(stages) < endpoint_ids;
    if (!sound) {
      slot.state.store(0, kRelaxed);
    } else if (!move_home(slot)) {
      homeless.push_back(&slot);
    }
  }
  // Those in their way have moved by now; where not, the table is as good as full.
  for (abi::Reservation* slot : homeless) {
    if (!move_home(*slot)) slot->state.store(0, kRelaxed);
  }

  std::uint64_t held = 0;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    abi::Reservation& slot = slots_[at];
    const std::uint64_t state = slot.state.load(kRelaxed);
    if (state == 0) continue;
    const Load load = load_of(slot, state);
    if (!change_decode(records_, load, 1)) {
      slot.state.store(0, kRelaxed);
      continue;
    }
    change_stages(records_, load, 1);
    users_.add(uid_of(slot.owner.load(kRelaxed)));
    if (observer_ != nullptr) tell_recovered(slot, flags_of(state));
    ++held;
  }
  return held;
}

void Reservations::tell_recovered(const abi::Reservation& slot, std::uint32_t flags) {
  NewReservation known;
  const std::uint64_t tokens = slot.tokens.load(kRelaxed);
  const std::uint64_t owner = slot.owner.load(kRelaxed);
  known.ticket = {slot.client.load(kRelaxed), slot.sequence.load(kRelaxed)};
  known.endpoint = slot.endpoint.load(kRelaxed);
  known.prefill_endpoint = abi::prefill_handle_of(slot.prefill_endpoint.load(kRelaxed));
  known.uncached_tokens = uncached_of(tokens);
  known.prompt_tokens = static_cast<std::uint32_t>(tokens);
  known.expected_output_tokens = static_cast<std::uint32_t>(owner);
  known.uid = uid_of(owner);
  known.tick = slot.picked_tick.load(kRelaxed);
  observer_->began(flight_of(slot), known);
  if ((flags & abi::kReservationFirstToken) != 0) observer_->first_token(flight_of(slot), 0);
}

std::vector<Reservations::Owner> Reservations::owners() const {
  std::vector<Owner> owners;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    const abi::Reservation& slot = slots_[at];
    if (state_of(slot.state.load(std::memory_order_acquire)) != abi::ReservationState::kHeld)
      continue;
    const Owner owner{slot.client.load(kRelaxed), uid_of(slot.owner.load(kRelaxed))};
    // Neighbours in the table are strangers, but there are few clients: a look at all is cheap.
    if (std::find(owners.begin(), owners.end(), owner) == owners.end()) owners.push_back(owner);
  }
  return owners;
}

std::uint64_t Reservations::count_held() const {
  std::uint64_t held = 0;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    held += state_of(slots_[at].state.load(kRelaxed)) == abi::ReservationState::kHeld ? 1 : 0;
  }
  return held;
}

}  // namespace pickd::endpoints

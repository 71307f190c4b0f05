#include "daemon/endpoints/reservations.hpp"

#include "abi/fence.hpp"
#include "daemon/endpoints/count_word.hpp"

namespace pickd::endpoints {

namespace {

// State word: [ state : 2 ][ flags : 6 ][ tag of the ticket : 56 ].
constexpr std::uint64_t kTagMask = (1ULL << 56) - 1;
constexpr std::uint32_t kWritingLooks = 1000;  // bounded: a record may stay half written after a crash

constexpr std::uint64_t state_word(abi::ReservationState state, std::uint32_t flags, std::uint64_t tag) {
  return (static_cast<std::uint64_t>(state) << 62) | (static_cast<std::uint64_t>(flags & 0x3F) << 56) |
         (tag & kTagMask);
}
constexpr abi::ReservationState state_of(std::uint64_t word) {
  return static_cast<abi::ReservationState>(word >> 62);
}
constexpr std::uint32_t flags_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 56) & 0x3F; }

std::uint64_t hash_of(Ticket ticket) {
  std::uint64_t mixed = ticket.client ^ (ticket.sequence * 0x9E3779B97F4A7C15ULL);
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
  return mixed ^ (mixed >> 32);
}

constexpr std::uint32_t uncached_of(std::uint64_t tokens) { return static_cast<std::uint32_t>(tokens >> 32); }
constexpr std::uint32_t uid_of(std::uint64_t owner) { return static_cast<std::uint32_t>(owner >> 32); }

constexpr auto kRelaxed = std::memory_order_relaxed;

// Changes the counts of the endpoint a handle names; false when its generation is gone.
bool change(abi::EndpointRecord* records, std::uint64_t handle, std::int64_t requests, std::int64_t tokens) {
  abi::EndpointRecord& record = records[abi::handle_endpoint(handle)];
  const std::uint32_t generation = abi::handle_generation(handle);
  const bool known = change_count(record.inflight_requests, generation, requests);
  if (tokens != 0) change_count(record.inflight_tokens, generation, tokens);
  return known;
}

}  // namespace

bool Reservations::reserve(const NewReservation& reservation) {
  const std::uint64_t hash = hash_of(reservation.ticket);
  for (std::uint32_t probe = 0; probe < abi::kReservationProbes && probe <= mask_; ++probe) {
    abi::Reservation& slot = slots_[(hash + probe) & mask_];
    std::uint64_t seen = slot.state.load(kRelaxed);
    if (state_of(seen) != abi::ReservationState::kFree) continue;
    // Claim, fill, publish. Partner of the release: the acquire in find() and expire_slice().
    if (!slot.state.compare_exchange_strong(
            seen, state_word(abi::ReservationState::kWriting, 0, hash), std::memory_order_acquire)) {
      continue;
    }
    slot.client.store(reservation.ticket.client, kRelaxed);
    slot.sequence.store(reservation.ticket.sequence, kRelaxed);
    slot.endpoint.store(reservation.endpoint, kRelaxed);
    slot.prefill_endpoint.store(reservation.prefill_endpoint, kRelaxed);
    slot.tokens.store((static_cast<std::uint64_t>(reservation.uncached_tokens) << 32) |
                          reservation.prompt_tokens,
                      kRelaxed);
    slot.owner.store((static_cast<std::uint64_t>(reservation.uid) << 32) |
                         reservation.expected_output_tokens,
                     kRelaxed);
    slot.picked_tick.store(reservation.tick, kRelaxed);
    // Counts first: a release of this record, which needs it published, can then never come before.
    change(records_, reservation.endpoint, 1, reservation.uncached_tokens);
    if (reservation.prefill_endpoint != 0) change(records_, reservation.prefill_endpoint, 1, 0);
    slot.state.store(state_word(abi::ReservationState::kHeld, 0, hash), std::memory_order_release);
    return true;
  }
  return false;
}

abi::Reservation* Reservations::find(Ticket ticket, std::uint64_t* state) const {
  const std::uint64_t hash = hash_of(ticket);
  for (std::uint32_t probe = 0; probe < abi::kReservationProbes && probe <= mask_; ++probe) {
    abi::Reservation& slot = slots_[(hash + probe) & mask_];
    std::uint64_t word = slot.state.load(std::memory_order_acquire);
    if ((word & kTagMask) != (hash & kTagMask)) continue;
    // Another worker is moving it or just ending it: that takes a few stores, so look again.
    for (std::uint32_t turn = 0; turn < kWritingLooks; ++turn) {
      if (state_of(word) != abi::ReservationState::kWriting) break;
      abi::spin_pause();
      word = slot.state.load(std::memory_order_acquire);
    }
    if (state_of(word) != abi::ReservationState::kHeld) continue;
    if (slot.client.load(kRelaxed) != ticket.client || slot.sequence.load(kRelaxed) != ticket.sequence) {
      continue;
    }
    *state = word;
    return &slot;
  }
  return nullptr;
}

bool Reservations::release(abi::Reservation& slot, std::uint64_t state, bool* stale) {
  const std::uint64_t claimed = state_word(abi::ReservationState::kWriting, flags_of(state), state);
  std::uint64_t expected = state;
  while (!slot.state.compare_exchange_strong(expected, claimed, std::memory_order_acq_rel)) {
    // Another worker set a flag in between: still ours to take. Anything else: somebody else ended it.
    if (state_of(expected) != abi::ReservationState::kHeld || (expected & kTagMask) != (state & kTagMask)) {
      return false;
    }
  }
  const bool tokens_held = (flags_of(expected) & abi::kReservationFirstToken) == 0;
  const std::int64_t tokens = tokens_held ? uncached_of(slot.tokens.load(kRelaxed)) : 0;
  const bool known = change(records_, slot.endpoint.load(kRelaxed), -1, -tokens);
  if (stale != nullptr) *stale = !known;
  if (const std::uint64_t prefill = slot.prefill_endpoint.load(kRelaxed); prefill != 0) {
    change(records_, prefill, -1, 0);
  }
  slot.state.store(0, std::memory_order_release);
  return true;
}

ReportOutcome Reservations::first_token(Ticket ticket, std::uint32_t uid) {
  std::uint64_t state = 0;
  abi::Reservation* slot = find(ticket, &state);
  if (slot == nullptr) return ReportOutcome::kUnknownTicket;
  if (uid_of(slot->owner.load(kRelaxed)) != uid) return ReportOutcome::kOtherUser;
  if ((flags_of(state) & abi::kReservationFirstToken) != 0) return ReportOutcome::kApplied;
  const std::uint64_t endpoint = slot->endpoint.load(kRelaxed);
  const std::int64_t tokens = uncached_of(slot->tokens.load(kRelaxed));
  // Who sets the flag gives the tokens back. A tag is a hash of the ticket, so the slot cannot have
  // come to hold another ticket in between without this failing.
  if (!slot->state.compare_exchange_strong(
          state,
          state_word(abi::ReservationState::kHeld, flags_of(state) | abi::kReservationFirstToken, state),
          std::memory_order_acq_rel)) {
    return first_token(ticket, uid);
  }
  const bool known = change_count(records_[abi::handle_endpoint(endpoint)].inflight_tokens,
                                  abi::handle_generation(endpoint), -tokens);
  return known ? ReportOutcome::kApplied : ReportOutcome::kStaleGeneration;
}

ReportOutcome Reservations::end(Ticket ticket, std::uint32_t uid, std::uint64_t* endpoint) {
  std::uint64_t state = 0;
  abi::Reservation* slot = find(ticket, &state);
  if (slot == nullptr) return ReportOutcome::kUnknownTicket;
  if (uid_of(slot->owner.load(kRelaxed)) != uid) return ReportOutcome::kOtherUser;
  const std::uint64_t held = slot->endpoint.load(kRelaxed);
  bool stale = false;
  if (!release(*slot, state, &stale)) return ReportOutcome::kUnknownTicket;
  if (endpoint != nullptr) *endpoint = held;
  return stale ? ReportOutcome::kStaleGeneration : ReportOutcome::kApplied;
}

ReportOutcome Reservations::move(Ticket ticket, std::uint32_t uid, std::uint64_t endpoint) {
  std::uint64_t state = 0;
  abi::Reservation* slot = find(ticket, &state);
  if (slot == nullptr) return ReportOutcome::kUnknownTicket;
  if (uid_of(slot->owner.load(kRelaxed)) != uid) return ReportOutcome::kOtherUser;
  // Claimed while it moves, so that an end at the same time finds either the old or the new holder.
  if (!slot->state.compare_exchange_strong(
          state, state_word(abi::ReservationState::kWriting, flags_of(state), state),
          std::memory_order_acq_rel)) {
    return move(ticket, uid, endpoint);
  }
  const bool tokens_held = (flags_of(state) & abi::kReservationFirstToken) == 0;
  const std::int64_t tokens = tokens_held ? uncached_of(slot->tokens.load(kRelaxed)) : 0;
  const bool known = change(records_, slot->endpoint.load(kRelaxed), -1, -tokens);
  change(records_, endpoint, 1, tokens);
  slot->endpoint.store(endpoint, kRelaxed);
  slot->state.store(state, std::memory_order_release);
  return known ? ReportOutcome::kApplied : ReportOutcome::kStaleGeneration;
}

ReportOutcome Reservations::touch(Ticket ticket, std::uint32_t uid, std::uint64_t tick) {
  std::uint64_t state = 0;
  abi::Reservation* slot = find(ticket, &state);
  if (slot == nullptr) return ReportOutcome::kUnknownTicket;
  if (uid_of(slot->owner.load(kRelaxed)) != uid) return ReportOutcome::kOtherUser;
  slot->picked_tick.store(tick, kRelaxed);
  return ReportOutcome::kApplied;
}

std::uint64_t Reservations::holder(Ticket ticket) const {
  std::uint64_t state = 0;
  const abi::Reservation* slot = find(ticket, &state);
  return slot == nullptr ? 0 : slot->endpoint.load(kRelaxed);
}

std::uint32_t Reservations::release_client(std::uint64_t client, std::uint32_t uid,
                                           std::uint64_t after_sequence) {
  std::uint32_t released = 0;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    abi::Reservation& slot = slots_[at];
    const std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state_of(state) != abi::ReservationState::kHeld || slot.client.load(kRelaxed) != client) continue;
    if (uid_of(slot.owner.load(kRelaxed)) != uid || slot.sequence.load(kRelaxed) <= after_sequence) continue;
    if (release(slot, state)) ++released;
  }
  return released;
}

std::uint32_t Reservations::expire_slice(std::uint32_t* cursor, std::uint32_t count, std::uint64_t tick,
                                         std::uint64_t lease_ticks) {
  std::uint32_t expired = 0;
  for (std::uint32_t step = 0; step < count; ++step, *cursor = (*cursor + 1) & mask_) {
    abi::Reservation& slot = slots_[*cursor];
    const std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state_of(state) != abi::ReservationState::kHeld) continue;
    const std::uint64_t picked = slot.picked_tick.load(kRelaxed);
    if (tick < picked || tick - picked <= lease_ticks) continue;
    if (release(slot, state)) ++expired;
  }
  return expired;
}

std::uint64_t Reservations::count_held() const {
  std::uint64_t held = 0;
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    held += state_of(slots_[at].state.load(kRelaxed)) == abi::ReservationState::kHeld ? 1 : 0;
  }
  return held;
}

}  // namespace pickd::endpoints

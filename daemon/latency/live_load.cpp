#include "daemon/latency/live_load.hpp"

#include <algorithm>

namespace pickd::latency {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// An entry of the line holds the place it was given to and whether its request still waits.
constexpr std::uint64_t waits_at(std::uint32_t place) {
  return (static_cast<std::uint64_t>(place) << 1) | 1;
}
constexpr std::uint64_t left_at(std::uint32_t place) {
  return static_cast<std::uint64_t>(place) << 1;
}

std::int64_t work_of(std::uint32_t uncached, std::uint32_t prompt) {
  return static_cast<std::int64_t>(attention_work(uncached, prompt));
}

std::uint64_t packed_tokens(const FlightSize& size) {
  return (static_cast<std::uint64_t>(size.uncached_tokens) << 32) | size.prompt_tokens;
}

constexpr std::uint64_t kWaits = 1ULL << 15;
constexpr std::uint64_t kFollowed = 1ULL << 14;
constexpr std::uint64_t kEndpointMask = kFollowed - 1;
constexpr std::uint64_t flight_word(std::uint64_t number, bool followed, std::uint32_t endpoint) {
  return (number << 16) | kWaits | (followed ? kFollowed : 0) | endpoint;
}
constexpr std::uint32_t endpoint_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word & kEndpointMask);
}
constexpr bool is_followed(std::uint64_t word) { return (word & kFollowed) != 0; }

}  // namespace

LiveLoad::LiveLoad(std::uint32_t endpoint_ids, std::uint32_t flights)
    : endpoints_(std::make_unique<Endpoint[]>(endpoint_ids)),
      lines_(std::make_unique<Line[]>(endpoint_ids)),
      flights_(std::make_unique<Flight[]>(flights)),
      endpoint_ids_(endpoint_ids) {}

void LiveLoad::enter_generation(Place place) {
  Endpoint& endpoint = endpoints_[place.endpoint];
  std::uint32_t seen = endpoint.generation.load(kRelaxed);
  // Whoever moves the generation on clears what the one before left; a change that another worker
  // makes in between is lost, which the next generation forgets again.
  if (seen == place.generation ||
      !endpoint.generation.compare_exchange_strong(seen, place.generation, kRelaxed))
    return;
  endpoint.queued_requests.store(0, kRelaxed);
  endpoint.queued_tokens.store(0, kRelaxed);
  endpoint.queued_work.store(0, kRelaxed);
  endpoint.running.store(0, kRelaxed);
  endpoint.kv_tokens.store(0, kRelaxed);
  endpoint.queued_kv_tokens.store(0, kRelaxed);
  endpoint.head_size.store(0, kRelaxed);
  Line& line = lines_[place.endpoint];
  line.head.store(line.tail.load(kRelaxed), kRelaxed);
}

void LiveLoad::add_running(Place place, std::int64_t requests, std::int64_t kv_tokens) {
  Endpoint& endpoint = endpoints_[place.endpoint];
  endpoint.running.fetch_add(requests, kRelaxed);
  endpoint.kv_tokens.fetch_add(kv_tokens, kRelaxed);
}

void LiveLoad::add_queued(std::uint32_t endpoint_id, std::int64_t sign, const FlightSize& size) {
  Endpoint& endpoint = endpoints_[endpoint_id];
  endpoint.queued_kv_tokens.fetch_add(sign * size.kv_tokens, kRelaxed);
  endpoint.queued_tokens.fetch_add(sign * size.uncached_tokens, kRelaxed);
  endpoint.queued_work.fetch_add(sign * work_of(size.uncached_tokens, size.prompt_tokens),
                                 kRelaxed);
  endpoint.queued_requests.fetch_add(static_cast<std::int32_t>(sign), kRelaxed);
}

std::uint64_t LiveLoad::begin(std::uint32_t flight_index, const FlightPlaces& places,
                              const FlightSize& size, bool followed, std::uint64_t now_ns) {
  const bool split = places.prefill.endpoint != 0;
  const Place waits_there = split ? places.prefill : places.decode;
  if (places.decode.endpoint >= endpoint_ids_ || waits_there.endpoint >= endpoint_ids_) return 0;
  Flight& flight = flights_[flight_index];
  enter_generation(places.decode);
  flight.tokens.store(packed_tokens(size), kRelaxed);
  flight.kv_generation.store(
      (static_cast<std::uint64_t>(size.kv_tokens) << 32) | places.decode.generation, kRelaxed);
  flight.prefill.store(
      (static_cast<std::uint64_t>(places.prefill.generation) << 32) | places.prefill.endpoint,
      kRelaxed);
  add_running(places.decode, 1, size.kv_tokens);
  if (split) {
    enter_generation(places.prefill);
    add_running(places.prefill, 1, size.kv_tokens);
  }
  add_queued(waits_there.endpoint, 1, size);
  flight.ticket.store(join_line(waits_there.endpoint, size, now_ns), kRelaxed);
  const std::uint64_t number = next_number_.fetch_add(1, kRelaxed) & ((1ULL << 48) - 1);
  // Release; partner: the acquire of whoever changes the word next.
  flight.word.store(flight_word(number, followed, places.decode.endpoint),
                    std::memory_order_release);
  return number;
}

std::uint32_t LiveLoad::join_line(std::uint32_t endpoint_id, const FlightSize& size,
                                  std::uint64_t now_ns) {
  // Room for the workers that look at the same moment.
  constexpr std::uint32_t kRoomMin = 64;
  Line& line = lines_[endpoint_id];
  Endpoint& endpoint = endpoints_[endpoint_id];
  const std::uint32_t head = line.head.load(std::memory_order_acquire);
  if (line.tail.load(kRelaxed) - head >= kLine - kRoomMin) return 0;
  const std::uint32_t ticket = line.tail.fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t packed = packed_tokens(size);
  line.sizes[ticket % kLine].store(packed, kRelaxed);
  line.since_ns[ticket % kLine].store(now_ns, kRelaxed);
  line.due_ns[ticket % kLine].store(size.due_ns, kRelaxed);
  line.kv_tokens_of[ticket % kLine].store(size.kv_tokens, kRelaxed);
  // Release; partner: the acquire in move_head(), which reads the size of a new head.
  line.entries[ticket % kLine].store(waits_at(ticket), std::memory_order_release);
  if (ticket == head) endpoint.head_ns.store(now_ns, kRelaxed);
  // Looked at again: who left meanwhile may have stopped at this entry while it was being written.
  if (ticket == line.head.load(std::memory_order_acquire))
    endpoint.head_size.store(packed, kRelaxed);
  return ticket;
}

bool LiveLoad::leave_line(Line& line, std::uint32_t ticket) {
  std::uint64_t expected = waits_at(ticket);
  // Fails when it was dropped as overtaken, or a new generation gave the entry away.
  return line.entries[ticket % kLine].compare_exchange_strong(expected, left_at(ticket),
                                                              std::memory_order_acq_rel);
}

void LiveLoad::move_head(std::uint32_t endpoint_id) {
  Line& line = lines_[endpoint_id];
  Endpoint& endpoint = endpoints_[endpoint_id];
  std::uint32_t head = line.head.load(std::memory_order_acquire);
  while (head != line.tail.load(std::memory_order_acquire)) {
    const std::uint64_t entry = line.entries[head % kLine].load(std::memory_order_acquire);
    if (entry == waits_at(head)) {
      endpoint.head_size.store(line.sizes[head % kLine].load(kRelaxed), kRelaxed);
      return;
    }
    if (entry != left_at(head)) return;  // being written: that worker makes it the head
    if (line.head.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel)) ++head;
  }
  endpoint.head_size.store(0, kRelaxed);
}

// The head was overtaken once more.
bool LiveLoad::is_lost(Line& line, std::uint32_t head, std::uint64_t now_ns) {
  const std::uint64_t due_ns = line.due_ns[head % kLine].load(kRelaxed);
  if (due_ns != 0 && now_ns >= due_ns) return true;
  const std::uint64_t seen = line.overtaken.load(kRelaxed);
  const std::uint64_t times = static_cast<std::uint32_t>(seen) == head ? (seen >> 32) + 1 : 1;
  line.overtaken.store((times << 32) | head, kRelaxed);
  return times >= kOvertakenMax &&
         now_ns >= line.since_ns[head % kLine].load(kRelaxed) + kOvertakenNs;
}

// The request with `ticket` left; what still waits before it was overtaken.
void LiveLoad::drop_overtaken(std::uint32_t endpoint_id, std::uint32_t ticket,
                              std::uint64_t now_ns) {
  Line& line = lines_[endpoint_id];
  while (true) {
    const std::uint32_t head = line.head.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(ticket - head) <= 0 || !is_lost(line, head, now_ns)) return;
    const std::uint64_t packed = line.sizes[head % kLine].load(kRelaxed);
    FlightSize size;
    size.prompt_tokens = static_cast<std::uint32_t>(packed);
    size.uncached_tokens = static_cast<std::uint32_t>(packed >> 32);
    size.kv_tokens = line.kv_tokens_of[head % kLine].load(kRelaxed);
    if (!leave_line(line, head)) return;
    endpoints_[endpoint_id].head_ns.store(now_ns, kRelaxed);
    add_queued(endpoint_id, -1, size);
    move_head(endpoint_id);
  }
}

LiveLoad::Look LiveLoad::look_at(const Flight& flight) {
  const std::uint64_t tokens = flight.tokens.load(kRelaxed);
  const std::uint64_t kv_generation = flight.kv_generation.load(kRelaxed);
  const std::uint64_t prefill = flight.prefill.load(kRelaxed);
  Look look;
  look.size.uncached_tokens = static_cast<std::uint32_t>(tokens >> 32);
  look.size.prompt_tokens = static_cast<std::uint32_t>(tokens);
  look.size.kv_tokens = static_cast<std::uint32_t>(kv_generation >> 32);
  look.generation = static_cast<std::uint32_t>(kv_generation);
  look.prefill = {static_cast<std::uint32_t>(prefill), static_cast<std::uint32_t>(prefill >> 32)};
  look.ticket = flight.ticket.load(kRelaxed);
  return look;
}

// It waits no more: neither where it waited, nor on the endpoint that only computed its prompt.
void LiveLoad::leave_queue(const Look& flight, Place decode, std::uint64_t now_ns) {
  const bool split = flight.prefill.endpoint != 0;
  const Place waited_there = split ? flight.prefill : decode;
  if (!counts(waited_there)) return;
  if (split) add_running(flight.prefill, -1, -static_cast<std::int64_t>(flight.size.kv_tokens));
  if (flight.ticket != 0) {
    Line& line = lines_[waited_there.endpoint];
    // Who overtakes the head takes nothing away from what was done for it.
    const bool was_head = line.head.load(kRelaxed) == flight.ticket;
    if (!leave_line(line, flight.ticket)) return;  // dropped before
    if (was_head) endpoints_[waited_there.endpoint].head_ns.store(now_ns, kRelaxed);
    move_head(waited_there.endpoint);
    drop_overtaken(waited_there.endpoint, flight.ticket, now_ns);
  }
  add_queued(waited_there.endpoint, -1, flight.size);
}

LiveLoad::Change LiveLoad::first_token(std::uint32_t flight_index, std::uint64_t now_ns) {
  Flight& flight = flights_[flight_index];
  std::uint64_t word = flight.word.load(std::memory_order_acquire);
  if ((word & kWaits) == 0) return {};
  // Fails only when it was drawn down this moment.
  if (!flight.word.compare_exchange_strong(word, word & ~kWaits, std::memory_order_acq_rel))
    return {};
  const Look look = look_at(flight);
  leave_queue(look, {endpoint_of(word), look.generation}, now_ns);
  return {true, is_followed(word)};
}

void LiveLoad::leave(const Look& flight, std::uint64_t word, std::uint64_t now_ns) {
  const Place decode{endpoint_of(word), flight.generation};
  if ((word & kWaits) != 0) leave_queue(flight, decode, now_ns);
  if (counts(decode)) add_running(decode, -1, -static_cast<std::int64_t>(flight.size.kv_tokens));
}

LiveLoad::Change LiveLoad::end(std::uint32_t flight_index, std::uint64_t now_ns) {
  Flight& flight = flights_[flight_index];
  const std::uint64_t word = flight.word.exchange(0, std::memory_order_acq_rel);
  if (word == 0) return {};
  leave(look_at(flight), word, now_ns);
  return {true, is_followed(word)};
}

bool LiveLoad::draw_down(std::uint32_t flight_index, std::uint64_t number, std::uint64_t now_ns) {
  Flight& flight = flights_[flight_index];
  std::uint64_t word = flight.word.load(std::memory_order_acquire);
  if (word == 0 || word >> 16 != number) return false;
  // Before the exchange: once the word is gone its owner may fill the flight anew. What was read is
  // of this flight if the exchange succeeds, because a number is never given twice.
  const Look look = look_at(flight);
  if (!flight.word.compare_exchange_strong(word, 0, std::memory_order_acq_rel)) return false;
  leave(look, word, now_ns);
  return true;
}

LiveLoad::Change LiveLoad::move(std::uint32_t flight_index, Place to, std::uint64_t now_ns) {
  const FlightSize size = look_at(flights_[flight_index]).size;
  const std::uint64_t word = flights_[flight_index].word.load(kRelaxed);
  const Change ended = end(flight_index, now_ns);
  if (!ended.counted) return {};  // drawn down: it counts no more
  begin(flight_index, {to}, size, false, now_ns);
  if ((word & kWaits) == 0) first_token(flight_index, now_ns);
  return ended;
}

}  // namespace pickd::latency

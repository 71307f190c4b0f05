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
constexpr std::uint64_t kEndpointMask = kWaits - 1;
constexpr std::uint64_t flight_word(std::uint64_t number, std::uint32_t endpoint) {
  return (number << 16) | kWaits | endpoint;
}
constexpr std::uint32_t endpoint_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word & kEndpointMask);
}

double not_below_zero(std::int64_t value) {
  return static_cast<double>(std::max<std::int64_t>(0, value));
}

}  // namespace

LiveLoad::LiveLoad(std::uint32_t endpoint_ids, std::uint32_t flights)
    : endpoints_(std::make_unique<Endpoint[]>(endpoint_ids)),
      flights_(std::make_unique<Flight[]>(flights)),
      endpoint_ids_(endpoint_ids) {
  // No place is 0, so that an entry never written is of no place.
  for (std::uint32_t id = 0; id < endpoint_ids; ++id) {
    endpoints_[id].head.store(1, kRelaxed);
    endpoints_[id].tail.store(1, kRelaxed);
  }
}

void LiveLoad::enter_generation(Endpoint& endpoint, std::uint32_t generation) {
  std::uint32_t seen = endpoint.generation.load(kRelaxed);
  // Whoever moves the generation on clears what the one before left; a change that another worker
  // makes in between is lost, which the next generation forgets again.
  if (seen == generation ||
      !endpoint.generation.compare_exchange_strong(seen, generation, kRelaxed))
    return;
  endpoint.queued_requests.store(0, kRelaxed);
  endpoint.queued_tokens.store(0, kRelaxed);
  endpoint.queued_work.store(0, kRelaxed);
  endpoint.running.store(0, kRelaxed);
  endpoint.kv_tokens.store(0, kRelaxed);
  endpoint.queued_kv_tokens.store(0, kRelaxed);
  endpoint.head_size.store(0, kRelaxed);
  endpoint.head.store(endpoint.tail.load(kRelaxed), kRelaxed);
}

std::uint64_t LiveLoad::begin(std::uint32_t flight_index, std::uint32_t endpoint_id,
                              std::uint32_t generation, const FlightSize& size,
                              std::uint64_t now_ns) {
  if (endpoint_id >= endpoint_ids_) return 0;
  Flight& flight = flights_[flight_index];
  Endpoint& endpoint = endpoints_[endpoint_id];
  enter_generation(endpoint, generation);
  flight.tokens.store(packed_tokens(size), kRelaxed);
  flight.kv_generation.store((static_cast<std::uint64_t>(size.kv_tokens) << 32) | generation,
                             kRelaxed);
  endpoint.running.fetch_add(1, kRelaxed);
  endpoint.kv_tokens.fetch_add(size.kv_tokens, kRelaxed);
  endpoint.queued_kv_tokens.fetch_add(size.kv_tokens, kRelaxed);
  endpoint.queued_tokens.fetch_add(size.uncached_tokens, kRelaxed);
  endpoint.queued_work.fetch_add(work_of(size.uncached_tokens, size.prompt_tokens), kRelaxed);
  endpoint.queued_requests.fetch_add(1, kRelaxed);
  flight.place.store(join_line(endpoint, size, now_ns), kRelaxed);
  const std::uint64_t number = next_number_.fetch_add(1, kRelaxed) & ((1ULL << 48) - 1);
  // Release; partner: the acquire of whoever changes the word next.
  flight.word.store(flight_word(number, endpoint_id), std::memory_order_release);
  return number;
}

std::uint32_t LiveLoad::join_line(Endpoint& endpoint, const FlightSize& size,
                                  std::uint64_t now_ns) {
  // Room for the workers that look at the same moment.
  constexpr std::uint32_t kRoomMin = 64;
  const std::uint32_t head = endpoint.head.load(std::memory_order_acquire);
  if (endpoint.tail.load(kRelaxed) - head >= kLine - kRoomMin) return 0;
  const std::uint32_t place = endpoint.tail.fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t packed = packed_tokens(size);
  endpoint.sizes[place % kLine].store(packed, kRelaxed);
  endpoint.since_ns[place % kLine].store(now_ns, kRelaxed);
  endpoint.kv_tokens_of[place % kLine].store(size.kv_tokens, kRelaxed);
  // Release; partner: the acquire in move_head(), which reads the size of a new head.
  endpoint.entries[place % kLine].store(waits_at(place), std::memory_order_release);
  if (place == head) endpoint.head_ns.store(now_ns, kRelaxed);
  // Looked at again: who left meanwhile may have stopped at this entry while it was being written.
  if (place == endpoint.head.load(std::memory_order_acquire))
    endpoint.head_size.store(packed, kRelaxed);
  return place;
}

bool LiveLoad::leave_line(Endpoint& endpoint, std::uint32_t place) {
  std::uint64_t expected = waits_at(place);
  // Fails when it was dropped as overtaken, or a new generation gave the entry away.
  return endpoint.entries[place % kLine].compare_exchange_strong(expected, left_at(place),
                                                                 std::memory_order_acq_rel);
}

void LiveLoad::move_head(Endpoint& endpoint) {
  std::uint32_t head = endpoint.head.load(std::memory_order_acquire);
  while (head != endpoint.tail.load(std::memory_order_acquire)) {
    const std::uint64_t entry = endpoint.entries[head % kLine].load(std::memory_order_acquire);
    if (entry == waits_at(head)) {
      endpoint.head_size.store(endpoint.sizes[head % kLine].load(kRelaxed), kRelaxed);
      return;
    }
    if (entry != left_at(head)) return;  // being written: that worker makes it the head
    if (endpoint.head.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel)) ++head;
  }
  endpoint.head_size.store(0, kRelaxed);
}

// The request at `place` left; what still waits before it was overtaken.
void LiveLoad::drop_overtaken(Endpoint& endpoint, std::uint32_t place, std::uint64_t now_ns) {
  const std::uint32_t head = endpoint.head.load(std::memory_order_acquire);
  if (static_cast<std::int32_t>(place - head) <= 0) return;
  const std::uint64_t seen = endpoint.overtaken.load(kRelaxed);
  const auto of = static_cast<std::uint32_t>(seen);
  const std::uint64_t times = of == head ? (seen >> 32) + 1 : 1;
  endpoint.overtaken.store((times << 32) | head, kRelaxed);
  if (times < kOvertakenMax) return;
  if (now_ns < endpoint.since_ns[head % kLine].load(kRelaxed) + kOvertakenNs) return;
  const std::uint64_t size = endpoint.sizes[head % kLine].load(kRelaxed);
  const std::uint32_t kv_tokens = endpoint.kv_tokens_of[head % kLine].load(kRelaxed);
  if (!leave_line(endpoint, head)) return;
  const auto uncached = static_cast<std::uint32_t>(size >> 32);
  endpoint.queued_kv_tokens.fetch_sub(kv_tokens, kRelaxed);
  endpoint.queued_tokens.fetch_sub(uncached, kRelaxed);
  endpoint.queued_work.fetch_sub(work_of(uncached, static_cast<std::uint32_t>(size)), kRelaxed);
  endpoint.queued_requests.fetch_sub(1, kRelaxed);
  move_head(endpoint);
}

LiveLoad::Look LiveLoad::look_at(const Flight& flight) {
  const std::uint64_t tokens = flight.tokens.load(kRelaxed);
  const std::uint64_t kv_generation = flight.kv_generation.load(kRelaxed);
  Look look;
  look.size.uncached_tokens = static_cast<std::uint32_t>(tokens >> 32);
  look.size.prompt_tokens = static_cast<std::uint32_t>(tokens);
  look.size.kv_tokens = static_cast<std::uint32_t>(kv_generation >> 32);
  look.generation = static_cast<std::uint32_t>(kv_generation);
  look.place = flight.place.load(kRelaxed);
  return look;
}

void LiveLoad::leave_queue(const Look& flight, Endpoint& endpoint, std::uint64_t now_ns) {
  if (flight.place != 0) {
    if (!leave_line(endpoint, flight.place)) return;  // dropped before
    endpoint.head_ns.store(now_ns, kRelaxed);
    move_head(endpoint);
    drop_overtaken(endpoint, flight.place, now_ns);
  }
  const FlightSize& size = flight.size;
  endpoint.queued_kv_tokens.fetch_sub(size.kv_tokens, kRelaxed);
  endpoint.queued_tokens.fetch_sub(size.uncached_tokens, kRelaxed);
  endpoint.queued_work.fetch_sub(work_of(size.uncached_tokens, size.prompt_tokens), kRelaxed);
  endpoint.queued_requests.fetch_sub(1, kRelaxed);
}

bool LiveLoad::first_token(std::uint32_t flight_index, std::uint64_t now_ns) {
  Flight& flight = flights_[flight_index];
  std::uint64_t word = flight.word.load(std::memory_order_acquire);
  if ((word & kWaits) == 0) return false;
  // Fails only when it was drawn down this moment.
  if (!flight.word.compare_exchange_strong(word, word & ~kWaits, std::memory_order_acq_rel))
    return false;
  Endpoint& endpoint = endpoints_[endpoint_of(word)];
  const Look look = look_at(flight);
  if (endpoint.generation.load(kRelaxed) == look.generation) leave_queue(look, endpoint, now_ns);
  return true;
}

void LiveLoad::leave(const Look& flight, std::uint64_t word, std::uint64_t now_ns) {
  Endpoint& endpoint = endpoints_[endpoint_of(word)];
  if (endpoint.generation.load(kRelaxed) != flight.generation) return;
  if ((word & kWaits) != 0) leave_queue(flight, endpoint, now_ns);
  endpoint.running.fetch_sub(1, kRelaxed);
  endpoint.kv_tokens.fetch_sub(flight.size.kv_tokens, kRelaxed);
}

void LiveLoad::end(std::uint32_t flight_index, std::uint64_t now_ns) {
  Flight& flight = flights_[flight_index];
  const std::uint64_t word = flight.word.exchange(0, std::memory_order_acq_rel);
  if (word != 0) leave(look_at(flight), word, now_ns);
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

void LiveLoad::move(std::uint32_t flight_index, std::uint32_t endpoint_id, std::uint32_t generation,
                    std::uint64_t now_ns) {
  const FlightSize size = look_at(flights_[flight_index]).size;
  const std::uint64_t word = flights_[flight_index].word.load(kRelaxed);
  end(flight_index, now_ns);
  if (word == 0) return;  // drawn down: it counts no more
  begin(flight_index, endpoint_id, generation, size, now_ns);
  if ((word & kWaits) == 0) first_token(flight_index, now_ns);
}

EndpointLoad LiveLoad::load(std::uint32_t endpoint_id, std::uint32_t generation,
                            std::uint64_t now_ns) const {
  EndpointLoad load;
  const Endpoint& endpoint = endpoints_[endpoint_id];
  if (endpoint.generation.load(kRelaxed) != generation) return load;
  load.queued_requests = not_below_zero(endpoint.queued_requests.load(kRelaxed));
  load.queued_tokens = not_below_zero(endpoint.queued_tokens.load(kRelaxed));
  load.queued_work = not_below_zero(endpoint.queued_work.load(kRelaxed));
  load.running = not_below_zero(endpoint.running.load(kRelaxed));
  load.kv_tokens = not_below_zero(endpoint.kv_tokens.load(kRelaxed));
  load.queued_kv_tokens = not_below_zero(endpoint.queued_kv_tokens.load(kRelaxed));
  if (load.queued_requests > 0) {
    const std::uint64_t head = endpoint.head_size.load(kRelaxed);
    const std::uint64_t since = endpoint.head_ns.load(kRelaxed);
    load.head_tokens = static_cast<double>(head >> 32);
    load.head_work = attention_work(load.head_tokens, static_cast<double>(head & 0xFFFFFFFF));
    load.head_age_s = now_ns > since ? static_cast<double>(now_ns - since) * 1e-9 : 0;
  }
  return load;
}

}  // namespace pickd::latency

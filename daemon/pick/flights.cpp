#include "daemon/pick/flights.hpp"

#include <algorithm>

#include "daemon/endpoints/reservations.hpp"

namespace pickd::pick {

namespace {

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

latency::Place place_of(std::uint64_t handle) {
  return {abi::handle_endpoint(handle), abi::handle_generation(handle)};
}

// 0: nothing was predicted.
std::uint64_t due_after(std::uint64_t now_ns, double ttft_s) {
  if (!(ttft_s > 0 && ttft_s < 3600)) return 0;
  return now_ns + static_cast<std::uint64_t>(latency::first_token_due_s(ttft_s) * 1e9);
}

latency::Outcome outcome_of(const endpoints::FlightEnd& end) {
  latency::Outcome outcome;
  outcome.served = end.served;
  if (end.usage.output_tokens != abi::kUnknown32) outcome.output_tokens = end.usage.output_tokens;
  if (end.usage.cached_tokens != abi::kUnknown32) outcome.cached_tokens = end.usage.cached_tokens;
  return outcome;
}

}  // namespace

Flights::Flights(std::uint32_t endpoint_ids, std::uint32_t flights)
    : live_(endpoint_ids, flights),
      promises_(endpoint_ids, flights),
      coefficients_(std::make_unique<const latency::Coefficients>()) {}

void Flights::push(FlightQueue::Kind kind, std::uint32_t flight, std::uint64_t at_ns,
                   const endpoints::FlightEnd& end) {
  FlightQueue::Cell* cell = queue_.claim();
  if (cell == nullptr) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  cell->event = {kind, flight, at_ns, end};
  queue_.publish(cell);
}

// Who ends a request without a clock of its own (a lease, a client's end) gets the time of the
// newest event. Relaxed: a time that is a little old does no harm.
std::uint64_t Flights::time_or_last(std::uint64_t now_ns) {
  if (now_ns == 0) return last_ns_.load(std::memory_order_relaxed);
  last_ns_.store(now_ns, std::memory_order_relaxed);
  return now_ns;
}

void Flights::began(std::uint32_t flight, const endpoints::NewReservation& reservation) {
  const std::uint64_t now_ns = time_or_last(reservation.now_ns);
  const auto* facts = static_cast<const PickFacts*>(reservation.facts);
  // Of before a restart: its load counts, nothing is learned from it.
  FlightQueue::Cell* cell = facts == nullptr ? nullptr : queue_.claim();
  if (facts != nullptr && cell == nullptr) dropped_.fetch_add(1, std::memory_order_relaxed);
  latency::FlightSize size;
  size.prompt_tokens = reservation.prompt_tokens;
  size.uncached_tokens = facts != nullptr ? facts->uncached_tokens : reservation.uncached_tokens;
  size.kv_tokens = facts != nullptr ? facts->kv_tokens : reservation.prompt_tokens;
  if (facts != nullptr) size.due_ns = due_after(now_ns, facts->predicted.ttft_s);
  const latency::Place decode = place_of(reservation.endpoint);
  const latency::Place prefill = place_of(reservation.prefill_endpoint);
  const std::uint64_t number =
      live_.begin(flight, {decode, prefill}, size, cell != nullptr, now_ns);
  if (facts != nullptr) promises_.begin(flight, decode.endpoint, facts->slo_itl_ms);
  if (cell == nullptr) return;
  cell->event = {FlightQueue::Kind::kPicked, flight, now_ns, {}};
  latency::Picked& picked = cell->picked;
  picked.at_s = seconds(now_ns);
  picked.number = number;
  picked.flight = flight;
  picked.generation = decode.generation;
  picked.endpoint = static_cast<std::uint16_t>(decode.endpoint);
  picked.prefill_endpoint = static_cast<std::uint16_t>(prefill.endpoint);
  picked.class_id = facts->class_id;
  picked.stream = facts->stream;
  picked.prompt_tokens = reservation.prompt_tokens;
  picked.uncached_tokens = facts->uncached_tokens;
  picked.kv_tokens = facts->kv_tokens;
  picked.queue = latency::queue_seen(facts->load);
  picked.progress_s = static_cast<float>(facts->predicted.progress_s);
  picked.slowness = facts->slowness;
  picked.ttft_s = static_cast<float>(facts->predicted.ttft_s);
  picked.itl_s = static_cast<float>(facts->predicted.itl_s);
  queue_.publish(cell);
}

void Flights::first_token(std::uint32_t flight, std::uint64_t now_ns) {
  const std::uint64_t at_ns = time_or_last(now_ns);
  if (live_.first_token(flight, at_ns).followed)
    push(FlightQueue::Kind::kFirstToken, flight, at_ns);
}

// The learner's pairing ends here: what follows happened elsewhere.
void Flights::moved(std::uint32_t flight, std::uint64_t endpoint_handle, std::uint64_t now_ns) {
  const std::uint64_t at_ns = time_or_last(now_ns);
  promises_.move(flight, abi::handle_endpoint(endpoint_handle));
  if (live_.move(flight, place_of(endpoint_handle), at_ns).followed)
    push(FlightQueue::Kind::kEnded, flight, at_ns);
}

void Flights::ended(std::uint32_t flight, std::uint64_t now_ns, const endpoints::FlightEnd& end) {
  const std::uint64_t at_ns = time_or_last(now_ns);
  promises_.end(flight);
  if (live_.end(flight, at_ns).followed) push(FlightQueue::Kind::kEnded, flight, at_ns, end);
}

std::size_t Flights::draw_down(latency::Learner& learner, std::uint64_t now_ns) {
  std::size_t drawn = 0;
  for (const auto& [flight, number] : learner.take_overdue(seconds(now_ns))) {
    if (!live_.draw_down(flight, number, now_ns)) continue;
    // A flight that begins at this number just now may lose its promise: one of very many.
    promises_.end(flight);
    ++drawn;
  }
  return drawn;
}

void Flights::publish(const latency::Coefficients& newest) {
  auto made = std::make_unique<latency::Coefficients>(newest);
  made->sound = latency::is_sound(newest);
  coefficients_.publish(std::move(made));
}

std::size_t Flights::teach(latency::Learner& learner, const std::function<double()>& noise) {
  std::size_t taken = 0;
  const auto use = [&learner, &noise](const FlightQueue::Cell& cell) {
    const FlightQueue::Event& event = cell.event;
    switch (event.kind) {
      case FlightQueue::Kind::kPicked: learner.picked(cell.picked); break;
      case FlightQueue::Kind::kFirstToken:
        learner.first_token(event.flight, seconds(event.at_ns));
        break;
      case FlightQueue::Kind::kEnded: {
        latency::Outcome outcome = outcome_of(event.end);
        if (noise) outcome.noise = noise();
        learner.ended(event.flight, seconds(event.at_ns), outcome);
        break;
      }
    }
  };
  while (queue_.take(use)) ++taken;
  return taken;
}

}  // namespace pickd::pick

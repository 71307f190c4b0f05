#include "daemon/pick/flights.hpp"

#include <algorithm>

#include "daemon/endpoints/reservations.hpp"

namespace pickd::pick {

namespace {

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Flights::Flights(std::uint32_t endpoint_ids, std::uint32_t flights)
    : live_(endpoint_ids, flights),
      coefficients_(std::make_unique<const latency::Coefficients>()),
      events_(kEventsMax) {}

void Flights::push(const Event& event) {
  if (!events_.bounded_push(event)) dropped_.fetch_add(1, std::memory_order_relaxed);
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
  const std::uint32_t endpoint = abi::handle_endpoint(reservation.endpoint);
  latency::FlightSize size;
  size.prompt_tokens = reservation.prompt_tokens;
  size.uncached_tokens = reservation.uncached_tokens;
  size.kv_tokens = facts != nullptr ? facts->kv_tokens : reservation.prompt_tokens;
  const std::uint64_t number =
      live_.begin(flight, endpoint, abi::handle_generation(reservation.endpoint), size, now_ns);
  if (facts == nullptr) return;  // of before a restart: its load counts, nothing is learned from it
  Event event{};
  event.kind = Kind::kPicked;
  event.flight = flight;
  event.at_ns = now_ns;
  event.picked.at_s = seconds(now_ns);
  event.picked.flight = flight;
  event.picked.number = number;
  event.picked.endpoint = static_cast<std::uint16_t>(endpoint);
  event.picked.generation = abi::handle_generation(reservation.endpoint);
  event.picked.class_id = facts->class_id;
  event.picked.stream = facts->stream;
  event.picked.prompt_tokens = reservation.prompt_tokens;
  event.picked.uncached_tokens = reservation.uncached_tokens;
  event.picked.kv_tokens = facts->kv_tokens;
  event.picked.load = facts->load;
  event.picked.progress_s = facts->predicted.progress_s;
  event.picked.slowness = facts->slowness;
  event.picked.ttft_s = facts->predicted.ttft_s;
  event.picked.itl_s = facts->predicted.itl_s;
  push(event);
}

void Flights::first_token(std::uint32_t flight, std::uint64_t now_ns) {
  const std::uint64_t at_ns = time_or_last(now_ns);
  if (!live_.first_token(flight, at_ns)) return;
  Event event{};
  event.kind = Kind::kFirstToken;
  event.flight = flight;
  event.at_ns = at_ns;
  push(event);
}

// The learner's pairing ends here: what follows happened elsewhere.
void Flights::moved(std::uint32_t flight, std::uint64_t endpoint_handle, std::uint64_t now_ns) {
  const std::uint64_t at_ns = time_or_last(now_ns);
  live_.move(flight, abi::handle_endpoint(endpoint_handle), abi::handle_generation(endpoint_handle),
             at_ns);
  Event event{};
  event.kind = Kind::kEnded;
  event.flight = flight;
  event.at_ns = at_ns;
  push(event);
}

void Flights::ended(std::uint32_t flight, std::uint64_t now_ns, const endpoints::FlightEnd& end) {
  const std::uint64_t at_ns = time_or_last(now_ns);
  live_.end(flight, at_ns);
  Event event{};
  event.kind = Kind::kEnded;
  event.flight = flight;
  event.at_ns = at_ns;
  event.end = end;
  push(event);
}

std::size_t Flights::draw_down(latency::Learner& learner, std::uint64_t now_ns) {
  std::size_t drawn = 0;
  for (const auto& [flight, number] : learner.take_overdue(seconds(now_ns)))
    drawn += live_.draw_down(flight, number, now_ns) ? 1 : 0;
  return drawn;
}

std::size_t Flights::teach(latency::Learner& learner) {
  std::size_t taken = 0;
  Event event{};
  while (events_.pop(event)) {
    ++taken;
    switch (event.kind) {
      case Kind::kPicked: learner.picked(event.picked); break;
      case Kind::kFirstToken: learner.first_token(event.flight, seconds(event.at_ns)); break;
      case Kind::kEnded: {
        latency::Outcome outcome;
        outcome.served = event.end.served;
        if (event.end.output_tokens != abi::kUnknown32)
          outcome.output_tokens = event.end.output_tokens;
        if (event.end.cached_tokens != abi::kUnknown32)
          outcome.cached_tokens = event.end.cached_tokens;
        learner.ended(event.flight, seconds(event.at_ns), outcome);
        break;
      }
    }
  }
  return taken;
}

}  // namespace pickd::pick

#include "daemon/latency/itl_promises.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "abi/limits.hpp"

namespace pickd::latency {

namespace {

constexpr std::uint32_t kEndpointBits = 12;
static_assert(abi::kEndpointIdsMax <= 1U << kEndpointBits);
constexpr std::uint32_t kEndpointMask = (1U << kEndpointBits) - 1;
constexpr std::uint32_t kValueBits = 20;
constexpr std::uint32_t kValueMax = (1U << kValueBits) - 1;
constexpr std::uint32_t kCountOne = 1U << kValueBits;
constexpr std::uint32_t kCountMax = 0xFFFU << kValueBits;
constexpr float kUnitsPerMs = 64;

std::uint32_t value_of(float itl_ms) {
  return static_cast<std::uint32_t>(
      std::clamp(itl_ms * kUnitsPerMs, 1.0F, static_cast<float>(kValueMax)));
}

// By exponent and the first two bits of the mantissa: four buckets an octave, the first from 2 ms.
std::uint32_t bucket_of(std::uint32_t value, std::uint32_t buckets) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) / kUnitsPerMs);
  const auto step = static_cast<std::int32_t>(bits >> 21) - (128 << 2);
  return static_cast<std::uint32_t>(std::clamp(step, 0, static_cast<std::int32_t>(buckets) - 1));
}

}  // namespace

ItlPromises::ItlPromises(std::uint32_t endpoint_ids, std::uint32_t flights)
    : endpoints_(new Endpoint[endpoint_ids]()),
      flights_(new std::atomic<std::uint32_t>[flights]()),
      endpoint_ids_(endpoint_ids),
      flight_count_(flights) {}

// False: the bucket counts no more. Relaxed throughout: a count publishes nothing but itself, and
// who reads it a moment too early or too late is one request off.
bool ItlPromises::join(std::uint32_t flight, std::uint32_t endpoint, std::uint32_t bucket,
                       std::uint32_t value) {
  std::atomic<std::uint32_t>& word = endpoints_[endpoint].buckets[bucket];
  std::uint32_t seen = word.load(std::memory_order_relaxed);
  std::uint32_t next = 0;
  do {
    if ((seen & kCountMax) == kCountMax) return false;
    const bool empty = (seen & kCountMax) == 0;
    const std::uint32_t least = empty ? value : std::min(seen & kValueMax, value);
    next = ((seen & kCountMax) + kCountOne) | least;
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  // Sequentially consistent, and so is the pair in leave(): either that one sees the count that
  // was made above, or this sets the bit after it was cleared.
  endpoints_[endpoint].used.fetch_or(1U << bucket, std::memory_order_seq_cst);
  flights_[flight].store((value << kEndpointBits) | endpoint, std::memory_order_relaxed);
  return true;
}

void ItlPromises::leave(std::uint32_t endpoint, std::uint32_t bucket) {
  Endpoint& of = endpoints_[endpoint];
  const std::uint32_t before = of.buckets[bucket].fetch_sub(kCountOne, std::memory_order_seq_cst);
  if ((before & kCountMax) != kCountOne) return;
  of.used.fetch_and(~(1U << bucket), std::memory_order_seq_cst);
  if ((of.buckets[bucket].load(std::memory_order_seq_cst) & kCountMax) != 0)
    of.used.fetch_or(1U << bucket, std::memory_order_seq_cst);
}

void ItlPromises::begin(std::uint32_t flight, std::uint32_t endpoint, float itl_ms) {
  if (!(itl_ms > 0) || flight >= flight_count_ || endpoint == 0 || endpoint >= endpoint_ids_)
    return;
  any_.store(true, std::memory_order_relaxed);
  const std::uint32_t value = value_of(itl_ms);
  join(flight, endpoint, bucket_of(value, kBuckets), value);
}

void ItlPromises::end(std::uint32_t flight) {
  if (!any_.load(std::memory_order_relaxed) || flight >= flight_count_) return;
  const std::uint32_t word = flights_[flight].exchange(0, std::memory_order_relaxed);
  if (word != 0) leave(word & kEndpointMask, bucket_of(word >> kEndpointBits, kBuckets));
}

void ItlPromises::move(std::uint32_t flight, std::uint32_t endpoint) {
  if (!any_.load(std::memory_order_relaxed) || flight >= flight_count_) return;
  const std::uint32_t word = flights_[flight].exchange(0, std::memory_order_relaxed);
  if (word == 0) return;
  const std::uint32_t value = word >> kEndpointBits;
  const std::uint32_t bucket = bucket_of(value, kBuckets);
  leave(word & kEndpointMask, bucket);
  if (endpoint != 0 && endpoint < endpoint_ids_) join(flight, endpoint, bucket, value);
}

float ItlPromises::tightest_ms(std::uint32_t endpoint) const {
  const Endpoint& of = endpoints_[endpoint];
  for (std::uint32_t used = of.used.load(std::memory_order_relaxed); used != 0; used &= used - 1) {
    const auto bucket = static_cast<std::uint32_t>(std::countr_zero(used));
    const std::uint32_t word = of.buckets[bucket].load(std::memory_order_relaxed);
    if ((word & kCountMax) != 0) return static_cast<float>(word & kValueMax) / kUnitsPerMs;
  }
  return std::numeric_limits<float>::infinity();
}

}  // namespace pickd::latency

#include "daemon/pick/session_table.hpp"

#include "abi/key.hpp"
#include "abi/prefix_word.hpp"

namespace pickd::pick {

namespace {

// Word: [ tag : 20 ][ generation, low byte : 8 ][ endpoint : 12 ][ tick : 24 ]; endpoint 0 = empty.
// Nobody sweeps this table, so the tick is wider than a stamp: it comes round after 9.7 days, when
// a session that nobody used meanwhile would be remembered for another TTL.
constexpr std::uint32_t kTickBits = 24;
constexpr std::uint32_t kTickMask = (1U << kTickBits) - 1;
constexpr std::uint32_t kEndpointBits = 12;
constexpr std::uint32_t kGenerationShift = kTickBits + kEndpointBits;
constexpr std::uint32_t kTagShift = kGenerationShift + 8;

constexpr std::uint64_t make_word(std::uint32_t tag, std::uint32_t generation,
                                  std::uint32_t endpoint, std::uint64_t tick) {
  return (static_cast<std::uint64_t>(tag) << kTagShift) |
         (static_cast<std::uint64_t>(generation & 0xFF) << kGenerationShift) |
         (static_cast<std::uint64_t>(endpoint) << kTickBits) | (tick & kTickMask);
}
constexpr std::uint32_t tag_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> kTagShift);
}
constexpr std::uint32_t endpoint_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> kTickBits) & (abi::kEndpointIdsMax - 1);
}
constexpr std::uint32_t generation_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> kGenerationShift) & 0xFF;
}
// 0 for a word that another worker wrote a little ahead of this one's clock.
constexpr std::uint32_t age_of(std::uint64_t word, std::uint64_t tick) {
  const auto age = static_cast<std::uint32_t>(tick - word) & kTickMask;
  return age > kTickMask - abi::kClockSlackTicks ? 0 : age;
}

}  // namespace

SessionTable::SessionTable(std::uint64_t secret, std::uint32_t lines)
    : secret_(secret),
      lines_(lines),
      words_(std::make_unique<std::atomic<std::uint64_t>[]>(static_cast<std::size_t>(lines) *
                                                            kWordsPerLine)) {}

std::uint64_t SessionTable::hash(std::string_view session) const {
  return XXH3_64bits_withSeed(session.data(), session.size(), secret_);
}

SessionTable::Found SessionTable::look(std::string_view session, std::uint64_t tick,
                                       std::uint64_t ttl_ticks) const {
  const std::uint64_t hashed = hash(session);
  const auto tag = static_cast<std::uint32_t>(hashed >> kTagShift);
  const std::atomic<std::uint64_t>* line =
      &words_[((hashed & 0xFFFFFFFF) * lines_ >> 32) * kWordsPerLine];
  for (std::uint32_t at = 0; at < kWordsPerLine; ++at) {
    // Partner: remember(); a word is whole in itself, so relaxed will do.
    const std::uint64_t word = line[at].load(std::memory_order_relaxed);
    if (endpoint_of(word) == 0 || tag_of(word) != tag) continue;
    if (age_of(word, tick) > ttl_ticks) continue;
    return {endpoint_of(word), generation_of(word)};
  }
  return {};
}

void SessionTable::remember(std::string_view session, std::uint32_t endpoint,
                            std::uint32_t generation, std::uint64_t tick) {
  const std::uint64_t hashed = hash(session);
  const auto tag = static_cast<std::uint32_t>(hashed >> kTagShift);
  std::atomic<std::uint64_t>* line =
      &words_[((hashed & 0xFFFFFFFF) * lines_ >> 32) * kWordsPerLine];
  std::uint32_t place = 0;
  std::uint32_t oldest_age = 0;
  for (std::uint32_t at = 0; at < kWordsPerLine; ++at) {
    const std::uint64_t word = line[at].load(std::memory_order_relaxed);
    if (endpoint_of(word) != 0 && tag_of(word) == tag) {
      place = at;
      break;
    }
    const std::uint32_t age = endpoint_of(word) == 0 ? kTickMask : age_of(word, tick);
    if (age >= oldest_age) {
      oldest_age = age;
      place = at;
    }
  }
  // A race of two sessions for one place forgets one of them: an affinity lost, nothing broken.
  line[place].store(make_word(tag, generation, endpoint, tick), std::memory_order_relaxed);
}

}  // namespace pickd::pick

#include "daemon/pick/trace_ring.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pickd::pick {

namespace {

constexpr int kTriesMax = 16;  // of a reader that the writer overtakes
constexpr std::size_t kPickWords = 1 + sizeof(TracedPick) / sizeof(std::uint64_t);

}  // namespace

TraceRing::TraceRing(std::size_t bytes)
    : capacity_(std::bit_ceil(std::max(bytes / sizeof(std::uint64_t), PickTrace::kWordsMin))),
      words_(new std::atomic<std::uint64_t>[capacity_]) {}

bool TraceRing::put(std::span<const std::uint64_t> trace) {
  const std::uint64_t need = trace.size() + 1;
  if (need > capacity_) return false;
  const std::size_t mask = capacity_ - 1;
  std::uint64_t at = next_.load(std::memory_order_relaxed);
  std::uint64_t oldest = oldest_.load(std::memory_order_relaxed);
  while (at + need - oldest > capacity_)
    oldest += 1 + words_[oldest & mask].load(std::memory_order_relaxed);
  // Before the words below: who reads one of them (acquire; copy()) sees that the old trace is
  // gone.
  oldest_.store(oldest, std::memory_order_relaxed);
  words_[at++ & mask].store(trace.size(), std::memory_order_release);
  for (const std::uint64_t word : trace) words_[at++ & mask].store(word, std::memory_order_release);
  // Publishes the trace; partner: newest().
  next_.store(at, std::memory_order_release);
  return true;
}

bool TraceRing::copy(std::uint64_t at, std::span<std::uint64_t> to) const {
  std::uint64_t from = at;
  for (std::uint64_t& word : to)
    word = words_[from++ & (capacity_ - 1)].load(std::memory_order_acquire);
  return oldest_.load(std::memory_order_relaxed) <= at;
}

std::optional<std::vector<std::uint64_t>> TraceRing::newest(
    const std::function<bool(const TracedPick& pick)>& wanted) const {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const std::uint64_t end = next_.load(std::memory_order_acquire);  // partner: put()
    std::uint64_t at = oldest_.load(std::memory_order_relaxed);
    std::optional<std::uint64_t> found;
    std::uint64_t found_words = 0;
    bool overtaken = false;
    while (at < end) {
      std::uint64_t head[1 + kPickWords];
      const std::size_t near = std::min<std::uint64_t>(std::size(head), end - at);
      if (!copy(at, {head, near})) {
        overtaken = true;
        break;
      }
      TracedPick pick{};
      if (near == std::size(head)) std::memcpy(&pick, head + 2, sizeof pick);
      if (near == std::size(head) && wanted(pick)) {
        found = at;
        found_words = head[0];
      }
      at += 1 + head[0];
    }
    if (overtaken) continue;
    if (!found) return std::nullopt;
    std::vector<std::uint64_t> trace(found_words);
    // Only whole traces go: when this one has, the oldest stands beyond all of it.
    if (copy(*found + 1, trace)) return trace;
  }
  return std::nullopt;
}

}  // namespace pickd::pick

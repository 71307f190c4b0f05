#include "daemon/workers/recorder.hpp"

#include <algorithm>
#include <cstring>

#include "abi/recording.hpp"

namespace pickd::workers {

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

abi::RecordingHead head_of(std::size_t words, abi::RecordingKind kind, std::uint64_t now_ns,
                           const endpoints::Ticket& ticket) {
  return {static_cast<std::uint32_t>(words), kind, now_ns, ticket.client, ticket.sequence};
}

}  // namespace

Recorder::Recorder(std::size_t words, std::uint32_t stride_blocks)
    : words_(words), mask_(words - 1), stride_blocks_(std::max<std::uint32_t>(stride_blocks, 1)) {}

bool Recorder::begin(std::size_t words) {
  place_ = filled_.load(std::memory_order_relaxed);
  // Acquire: what take() read is not written over before it was read.
  if (place_ + words - taken_.load(std::memory_order_acquire) <= words_.size()) return true;
  lost_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void Recorder::put(const void* bytes, std::size_t words) {
  const auto* from = static_cast<const std::byte*>(bytes);
  for (std::size_t at = 0; at < words; ++at)
    std::memcpy(&words_[place_++ & mask_], from + at * kWordBytes, kWordBytes);
}

// Release: take() acquires it and finds the words.
void Recorder::publish() { filled_.store(place_, std::memory_order_release); }

void Recorder::put_pick(const pick::PickRequest& request, const pick::PickResult& result) {
  if (result.count == 0 || request.dry_run) return;
  const std::size_t strides =
      std::min<std::size_t>(request.keys.size() / stride_blocks_, abi::kRecordingKeysMax - 1);
  const bool rest = request.keys.size() > strides * stride_blocks_;
  const std::size_t keys = strides + (rest ? 1 : 0);
  abi::RecordingPick entry{};
  const std::size_t words = sizeof entry / kWordBytes + keys;
  if (!begin(words)) return;
  entry.head = head_of(words, abi::RecordingKind::kPick, request.now_ns, request.ticket);
  entry.prompt_tokens = request.prompt_tokens;
  entry.expected_output_tokens = request.expected_output_tokens;
  entry.match_tokens = result.endpoints[0].match_tokens;
  entry.keys = static_cast<std::uint32_t>(keys);
  put(&entry, sizeof entry / kWordBytes);
  for (std::size_t at = 1; at <= strides; ++at) put(&request.keys[at * stride_blocks_ - 1], 1);
  if (rest) put(&request.keys.back(), 1);
  publish();
}

void Recorder::put_end(const DecodedReport& report, std::uint64_t now_ns) {
  const bool done = report.kind == abi::ReportKind::kDone;
  if (!done && report.kind != abi::ReportKind::kFailed &&
      report.kind != abi::ReportKind::kCancelled) {
    return;
  }
  abi::RecordingEnd entry{};
  constexpr std::size_t kWords = sizeof entry / kWordBytes;
  if (!begin(kWords)) return;
  entry.head = head_of(kWords, abi::RecordingKind::kEnd, now_ns, report.ticket);
  entry.output_tokens = report.output_tokens;
  entry.done = done ? 1 : 0;
  put(&entry, kWords);
  publish();
}

std::size_t Recorder::take(std::span<std::uint64_t> to) {
  std::uint64_t place = taken_.load(std::memory_order_relaxed);
  const std::uint64_t filled = filled_.load(std::memory_order_acquire);
  std::size_t count = 0;
  while (place != filled) {
    const auto words = static_cast<std::uint32_t>(words_[place & mask_]);  // of RecordingHead
    if (words > to.size() - count) break;
    for (std::uint32_t at = 0; at < words; ++at) to[count++] = words_[place++ & mask_];
  }
  taken_.store(place, std::memory_order_release);
  return count;
}

void Recorder::forget() {
  taken_.store(filled_.load(std::memory_order_acquire), std::memory_order_release);
}

}  // namespace pickd::workers

#include "tools/ctl/trace_writer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "abi/limits.hpp"
#include "abi/recording.hpp"
#include "abi/state_layout.hpp"

namespace pickd::ctl {

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

template <typename Entry>
Entry read(std::span<const std::uint64_t> words) {
  Entry entry;
  if (words.size() * kWordBytes < sizeof entry)
    throw std::runtime_error("a recording's entry is too short");
  std::memcpy(&entry, words.data(), sizeof entry);
  return entry;
}

}  // namespace

void TraceWriter::add(std::span<const std::uint64_t> entries) {
  while (!entries.empty()) {
    const auto head = read<abi::RecordingHead>(entries);
    if (head.words > entries.size() || head.words == 0)
      throw std::runtime_error("a recording's entry is cut");
    const auto entry = entries.first(head.words);
    // An entry of a kind that a newer daemon has is passed over.
    if (head.kind == abi::RecordingKind::kPick) add_pick(entry);
    if (head.kind == abi::RecordingKind::kEnd) add_end(entry);
    entries = entries.subspan(head.words);
  }
  write_ended();
}

void TraceWriter::add_pick(std::span<const std::uint64_t> entry) {
  const auto pick = read<abi::RecordingPick>(entry);
  constexpr std::size_t kKeysAt = sizeof pick / kWordBytes;
  if (entry.size() != kKeysAt + pick.keys)
    throw std::runtime_error("a recorded pick's keys are cut");
  if (picks_++ == 0) first_ns_ = pick.head.now_ns;
  prompt_tokens_ += pick.prompt_tokens;
  match_tokens_ += pick.match_tokens;
  Held held{pick.head.now_ns, pick.prompt_tokens, pick.expected_output_tokens, {}};
  const std::size_t blocks = (std::size_t{pick.prompt_tokens} + abi::kRecordingStrideTokens - 1) /
                             abi::kRecordingStrideTokens;
  std::uint64_t known = 0;  // a key stands for all of the prompt up to it
  for (std::uint32_t at = 0; at < pick.keys && held.ids.size() < blocks; ++at) {
    const std::uint64_t next = next_id_;
    held.ids.push_back(id_of(entry[kKeysAt + at]));
    if (held.ids.back() != next) ++known;
  }
  shown_tokens_ += std::min<std::uint64_t>(known * abi::kRecordingStrideTokens, pick.prompt_tokens);
  // What no whole block covers is like nothing else.
  while (held.ids.size() < blocks) held.ids.push_back(next_id_++);
  open_[{pick.head.ticket_client, pick.head.ticket_sequence}] = first_held_ + held_.size();
  held_.push_back(std::move(held));
}

void TraceWriter::add_end(std::span<const std::uint64_t> entry) {
  const auto end = read<abi::RecordingEnd>(entry);
  const auto open = open_.find({end.head.ticket_client, end.head.ticket_sequence});
  if (open == open_.end()) return;  // picked before the recording began
  Held& held = held_[open->second - first_held_];
  open_.erase(open);
  if (end.output_tokens == abi::kUnknown32) {
    held.output_tokens = kUntold;
    return;
  }
  held.output_tokens = end.output_tokens;
  ++told_;
  output_tokens_ += end.output_tokens;
}

std::uint64_t TraceWriter::id_of(std::uint64_t key) {
  const auto [at, is_new] = ids_.try_emplace(key, next_id_);
  if (is_new) ++next_id_;
  return at->second;
}

void TraceWriter::write_ended() {
  while (!held_.empty() && held_.front().output_tokens != kOpen) {
    write(held_.front());
    held_.pop_front();
    ++first_held_;
  }
}

void TraceWriter::finish() {
  for (const Held& held : held_) write(held);
  first_held_ += held_.size();
  held_.clear();
  open_.clear();
}

void TraceWriter::write(const Held& held) {
  std::uint64_t output_tokens = 1;
  if (held.output_tokens >= 0) {
    output_tokens = static_cast<std::uint64_t>(held.output_tokens);
  } else {
    ++guessed_;
    if (held.expected_output_tokens != 0) {
      output_tokens = held.expected_output_tokens;
    } else if (told_ != 0) {
      output_tokens = output_tokens_ / told_;
    }
  }
  // Two workers' entries may come a little out of order.
  const std::uint64_t since_ns = held.now_ns > first_ns_ ? held.now_ns - first_ns_ : 0;
  std::string line = "{\"timestamp\": " + std::to_string(since_ns / 1'000'000) +
                     ", \"input_length\": " + std::to_string(held.prompt_tokens) +
                     ", \"output_length\": " + std::to_string(output_tokens) + ", \"hash_ids\": [";
  for (std::size_t at = 0; at < held.ids.size(); ++at)
    line += (at == 0 ? "" : ", ") + std::to_string(held.ids[at]);
  write_(line + "]}\n");
  ++written_;
}

double TraceWriter::shown_hit_share() const {
  return prompt_tokens_ == 0
             ? 0
             : static_cast<double>(shown_tokens_) / static_cast<double>(prompt_tokens_);
}

double TraceWriter::hit_share() const {
  return prompt_tokens_ == 0
             ? 0
             : static_cast<double>(match_tokens_) / static_cast<double>(prompt_tokens_);
}

}  // namespace pickd::ctl

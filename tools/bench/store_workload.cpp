// Chains of keys, and the text they stand for. See store_workload.hpp.
#include "tools/bench/store_workload.hpp"

#include <algorithm>
#include <cstring>

#include "daemon/base/random.hpp"
#include "tools/bench/store_chat.hpp"
#include "tools/bench/trace.hpp"

namespace pickd::bench {
namespace {

constexpr std::uint64_t kSharedRoot = 0x5347524544'0001ULL;
constexpr std::uint64_t kBytesPerToken = 4;
constexpr std::uint64_t kChatSeed = 1;
constexpr std::uint32_t kChatRequests = 12'000;

std::uint64_t mixed(std::uint64_t value) { return base::Random(value).next(); }

void append_text(std::string& text, std::uint64_t seed, std::size_t bytes) {
  base::Random random(seed);
  const std::size_t from = text.size();
  text.resize(from + bytes);
  for (std::size_t at = from; at < text.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next() | 0x4040404040404040ULL;
    std::memcpy(text.data() + at, &word, std::min(sizeof word, text.size() - at));
  }
}

}  // namespace

StoreWorkload::StoreWorkload(const StoreOptions& options)
    : expand_(options.expand),
      shared_blocks_(options.shared_blocks),
      block_bytes_(
          static_cast<std::uint32_t>(kTraceBlockTokens * kBytesPerToken / options.expand)) {
  const Trace trace =
      options.trace.empty() ? make_chat_trace(kChatSeed, kChatRequests) : read_trace(options.trace);
  name_ = options.trace.empty()
              ? "chats of seed " + std::to_string(kChatSeed)
              : options.trace.substr(options.trace.rfind('/') + 1);  // npos + 1 is 0: all of it
  std::size_t count = trace.requests.size();
  if (options.requests_max != 0) count = std::min<std::size_t>(count, options.requests_max);
  starts_.push_back(0);
  id_starts_.push_back(0);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t key = mixed(kSharedRoot);
    for (std::uint32_t block = 0; block < shared_blocks_; ++block)
      keys_.push_back(key = mixed(key ^ block));
    for (const std::uint64_t id : trace.requests[i].block_ids) {
      ids_.push_back(id);
      for (std::uint32_t part = 0; part < expand_; ++part) {
        keys_.push_back(key = mixed(key ^ mixed(id * expand_ + part)));
      }
    }
    starts_.push_back(keys_.size());
    id_starts_.push_back(ids_.size());
  }
}

StorePrompt StoreWorkload::prompt(std::size_t at, std::uint32_t loop, bool with_text,
                                  PromptBuffer& buffer) const {
  const std::uint64_t salt = loop == 0 ? 0 : mixed(loop);
  buffer.keys.assign(keys_.begin() + static_cast<std::ptrdiff_t>(starts_[at]),
                     keys_.begin() + static_cast<std::ptrdiff_t>(starts_[at + 1]));
  for (std::size_t i = shared_blocks_; loop != 0 && i < buffer.keys.size(); ++i) {
    buffer.keys[i] = mixed(buffer.keys[i] ^ salt);
  }
  buffer.text.clear();
  if (with_text) {
    append_text(buffer.text, kSharedRoot, std::size_t{shared_blocks_} * block_bytes_);
    for (std::uint64_t i = id_starts_[at]; i < id_starts_[at + 1]; ++i) {
      append_text(buffer.text, ids_[i] ^ salt, std::size_t{expand_} * block_bytes_);
    }
  }
  return {buffer.keys, buffer.text};
}

StorePrompt StoreWorkload::shared(PromptBuffer& buffer) const {
  buffer.keys.assign(keys_.begin(), keys_.begin() + shared_blocks_);
  buffer.text.clear();
  append_text(buffer.text, kSharedRoot, std::size_t{shared_blocks_} * block_bytes_);
  return {buffer.keys, buffer.text};
}

}  // namespace pickd::bench

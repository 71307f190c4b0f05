#include "libbody/prompt_stream.hpp"

#include <cstring>

#include "libbody/limits.hpp"

namespace pickd::body {

namespace {

constexpr char kWordEnd = '\xFE';

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

}  // namespace

void PromptStream::clear(std::size_t keep_bytes) {
  arena_.clear(keep_bytes);
  segments_.clear();
  segments_.shrink(keep_bytes);
  tokens_.clear();
  tokens_.shrink(keep_bytes);
  prompts_.clear();
  prompts_.shrink(keep_bytes);
  grown_ = nullptr;
  content_ = copying_ = false;
  out_of_memory_ = false;
}

bool PromptStream::begin_prompt(bool of_tokens) {
  Prompt prompt;
  prompt.of_tokens = of_tokens;
  prompt.segment = segments_.size();
  prompt.token = tokens_.size();
  grown_ = nullptr;
  content_ = false;
  if (prompts_.push(prompt)) return true;
  out_of_memory_ = true;
  return false;
}

void PromptStream::end_prompt() {
  Prompt& prompt = prompts_.back();
  prompt.segment_count = segments_.size() - prompt.segment;
  prompt.token_count = tokens_.size() - prompt.token;
  prompt.bytes = 0;
  for (std::size_t i = 0; i < prompt.segment_count; ++i) {
    prompt.bytes += segments_[prompt.segment + i].size;
  }
  prompt.has_content = content_;
}

void PromptStream::reopen_prompt() {
  grown_ = nullptr;
  content_ = prompts_.back().has_content;
}

// Inlined: a body of many tools is hundreds of thousands of these, most of them of two bytes.
__attribute__((always_inline)) inline void PromptStream::put(const char* bytes, std::size_t size) {
  if (size == 0) return;
  char* at = arena_.take(size);
  if (at == nullptr) {
    out_of_memory_ = true;
    return;
  }
  std::memcpy(at, bytes, size);
  if (at == grown_ && !segments_.empty()) {
    segments_.back().size += size;
  } else if (!segments_.push({at, size})) {
    out_of_memory_ = true;
  }
  grown_ = at + size;
}

void PromptStream::mark(Mark kind) {
  const char bytes[] = {'\xFF', static_cast<char>(kind)};
  put(bytes, sizeof bytes);
}

void PromptStream::word(std::string_view text) {
  if (copying_ || text.size() < kPointedBytesMin) {
    put(text.data(), text.size());
  } else {
    point(text.data(), text.size());
  }
  put(&kWordEnd, 1);
}

void PromptStream::text(std::string_view text) {
  if (!content_) content_ = !is_blank(text);
  if (copying_ || text.size() < kPointedBytesMin) {
    put(text.data(), text.size());
  } else {
    point(text.data(), text.size());
  }
}

void PromptStream::digest(const unsigned char* digest, std::size_t bytes) {
  char block[kDigestBytes * 16];
  for (std::size_t at = 0; at < sizeof block; at += kDigestBytes) {
    std::memcpy(block + at, digest, kDigestBytes);
  }
  for (std::size_t left = bytes; left != 0;) {
    const std::size_t size = left < sizeof block ? left : sizeof block;
    put(block, size);
    left -= size;
  }
}

void PromptStream::raw(const void* bytes, std::size_t size) {
  put(static_cast<const char*>(bytes), size);
}

void PromptStream::token(std::uint32_t id) {
  if (!tokens_.push(id)) out_of_memory_ = true;
}

void PromptStream::point(const char* bytes, std::size_t size) {
  if (!segments_.push({bytes, size})) out_of_memory_ = true;
  grown_ = nullptr;
}

}  // namespace pickd::body

// The completions API in words: JSON bodies to requests, tokens to JSON answers. Knows nothing of
// sockets, of scheduling and of time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.hpp"
#include "tools/enginesim/tokens.hpp"

namespace pickd::enginesim {

struct CompletionRequest {
  std::string model;  // or the name of an adapter
  std::string salt;   // cache_salt
  std::vector<Token> prompt;
  std::uint32_t tokens_max = 16;  // vLLM's default for completions
  bool ignore_eos = false;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
};

// The error's text names the field and what would be right.
base::Result<CompletionRequest> parse_completion(std::string_view body);

struct Usage {
  std::size_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t output_tokens = 0;
};

// Writes the answers to one request. `finish_reason` is "stop", "length", or empty while it goes
// on.
class CompletionWriter {
 public:
  CompletionWriter(std::string_view id, std::string_view model, std::uint64_t created_s);

  // One server-sent event with `text`; `usage` may be null.
  std::string event(std::string_view text, std::string_view finish_reason,
                    const Usage* usage) const;
  // The event that ends a stream with include_usage, and the end mark of every stream.
  std::string usage_event(const Usage& usage) const;
  static std::string_view done_event() { return "data: [DONE]\n\n"; }

  std::string whole(std::string_view text, std::string_view finish_reason,
                    const Usage& usage) const;

 private:
  std::string head_;  // the members that every answer begins with
};

// An error body as vLLM writes it.
std::string error_body(int status, std::string_view type, std::string_view message);

// The body of /v1/models; `names[0]` is the model, the others are its adapters.
std::string models_body(const std::vector<std::string>& names, std::uint64_t tokens_max,
                        std::uint64_t created_s);

}  // namespace pickd::enginesim

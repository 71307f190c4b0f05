// Bodies of each API into prompts: one function an API, in files of their own.
#pragma once

#include <array>
#include <cstdint>

#include "libbody/fields.hpp"
#include "libbody/limits.hpp"
#include "libbody/message_writer.hpp"
#include "pickd/body.h"

namespace pickd::body {

// Media that stand in a prompt of token ids.
struct TokenExtras {
  List<std::array<unsigned char, kDigestBytes>> digests;
  List<pickd_extra> extras;  // in order of offset; digests are pointed to once all are there
  void clear() {
    digests.clear();
    extras.clear();
  }
};

class PromptReader {
 public:
  PromptReader(PromptStream& stream, MessageWriter& writer, TokenExtras& extras)
      : stream_(stream), writer_(writer), extras_(extras) {}

  // 0, -EINVAL (the prompt is missing or has a form that the API does not have) or -ENOMEM. Prompts
  // that were written before an error are to be dropped.
  int read(pickd_body_api api, const Fields& fields);

  // Tokens of prompts beyond kPromptsMax.
  std::uint64_t tokens_beyond() const { return tokens_beyond_; }
  // The last message is the assistant's: the answer goes on with it.
  bool is_open_ended() const { return is_open_ended_; }

 private:
  // prompt_reader.cpp: what several APIs share.
  void heads(const Fields& fields);
  void tools(const Json* tools);
  int prompts(const Json* prompts, const Fields& fields);
  int prompt(const Json& prompt, const Fields& fields);
  int token_prompt(const JsonArray& ids);
  int completions(const Fields& fields);
  int embeddings(const Fields& fields);
  // engine_reader.cpp
  int sglang(const Fields& fields);
  int sglang_prompt(const Json& text, const Json* const (&media)[3]);
  int vllm(const Fields& fields);
  int features(const Json& features, std::size_t token_count);
  int features_of(const Json& hashes, const Json& places, std::size_t token_count);
  // chat_reader.cpp
  int chat(const Fields& fields);
  int chat_message(const Json& message);
  void chat_calls(const Json& calls);
  // anthropic_reader.cpp
  int anthropic(const Fields& fields);
  void anthropic_system(const Json& system);
  int anthropic_message(const Json& message);
  void anthropic_part(const Json& part);
  // responses_reader.cpp
  int responses(const Fields& fields);
  void responses_item(const Json& item);
  void responses_reasoning(const Json& item);
  void be_assistant();

  PromptStream& stream_;
  MessageWriter& writer_;
  TokenExtras& extras_;
  std::uint64_t tokens_beyond_ = 0;
  bool is_open_ended_ = false;
  bool in_assistant_ = false;  // of responses: items of one turn stand one behind the other
};

}  // namespace pickd::body

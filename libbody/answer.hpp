// An answer from its head to what a report tells: first token, usage, how it ended. The C functions
// are in answer_calls.cpp, what each API's answers look like in openai_answer.cpp and
// answer_forms.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "libbody/answer_text.hpp"
#include "libbody/counters.hpp"
#include "libbody/headers.hpp"
#include "libbody/json.hpp"
#include "libbody/limits.hpp"
#include "libbody/sse.hpp"
#include "pickd/body.h"

namespace pickd::body {

struct AnswerOptions {
  std::size_t answer_bytes_max = kAnswerBytesDefault;
  std::size_t text_bytes_max = kAnswerTextBytesDefault;
  std::size_t keep_bytes_max = kAnswerKeepBytesDefault;
  pickd_body_counters* counters = nullptr;
};

// A figure that events tell in parts or again and again. All are totals so far, so the largest is
// the last; an event that does not tell one, or tells 0 of it, takes nothing away.
class Figure {
 public:
  void take(std::uint32_t value) {
    if (value != PICKD_UNKNOWN && (value_ == PICKD_UNKNOWN || value > value_)) value_ = value;
  }
  bool is_known() const { return value_ != PICKD_UNKNOWN; }
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = PICKD_UNKNOWN;
};

class Answer : private EventSink {
 public:
  explicit Answer(const AnswerOptions& options) : options_(options) {}
  virtual ~Answer() = default;

  void begin(pickd_body_api api, int status, const Headers& headers, bool keep_text);
  int add(std::string_view bytes);  // what came with it, or a negative errno value
  int end();
  int report(pickd_report_info& report) const;

  bool has_begun() const { return state_ != State::kIdle; }
  bool has_ended() const { return state_ == State::kEnded; }
  const AnswerText& text() const { return text_; }

 private:
  enum class State : std::uint8_t { kIdle, kReading, kEnded };
  enum class Form : std::uint8_t { kUnknown, kEvents, kJson, kUnread };
  enum class Error : std::uint8_t { kNone, kOfClient, kOfServer };

  void event(const JsonBuffer& data) override;
  void event_too_long() override;
  int find_form(std::string_view bytes);
  int add_json(std::string_view bytes);
  int end_json();
  int end_events();
  void take(const Json& root, bool whole);
  pickd_report_kind kind() const;

  // A token has come, or several.
  void token() { has_token_ = true; }
  void error(const Json& error);

  // openai_answer.cpp: completions, chat completions, embeddings, and vLLM's own
  void take_openai(const Json& root);
  void take_choice(const Json& choice);
  void take_message(const Json& message, bool kept);
  void take_calls(const Json& calls, bool kept);
  void take_openai_usage(const Json& usage);
  // answer_forms.cpp
  void take_messages_event(const Json& root);
  void take_messages_block(std::uint64_t index, const Json& block, bool whole);
  void take_messages_usage(const Json& usage);
  void take_messages(const Json& root);
  void take_responses_event(const Json& root);
  void take_responses(const Json& response, bool with_text);
  void take_responses_item(std::uint64_t index, const Json& item);
  void take_sglang(const Json& root);

  const AnswerOptions options_;
  State state_ = State::kIdle;
  Form form_ = Form::kUnknown;
  Error error_ = Error::kNone;
  pickd_body_api api_ = PICKD_BODY_UNKNOWN;
  int status_ = 200;
  bool is_encoded_ = false;
  bool is_too_long_ = false;
  bool is_whole_ = false;  // it said that it is complete
  bool out_of_memory_ = false;
  bool has_token_ = false;  // of the event, then of the piece that is being read
  bool has_usage_ = false;
  std::uint32_t token_events_ = 0;
  std::uint32_t token_pieces_ = 0;
  std::uint64_t open_choices_ = 0;  // bit i: choice i has begun and not finished
  bool any_finished_ = false;
  Figure prompt_, cached_, output_;
  Figure uncached_, cache_written_;  // of Anthropic: the prompt's tokens in three parts

  AnswerText text_;
  SseReader events_;
  JsonBuffer buffer_;
  JsonParser parser_;
};

}  // namespace pickd::body

struct pickd_answer final : pickd::body::Answer {
  using Answer::Answer;
};

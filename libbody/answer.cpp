#include "libbody/answer.hpp"

#include <errno.h>

namespace pickd::body {

namespace {

constexpr std::string_view kDone = "[DONE]";

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

void Answer::begin(pickd_body_api api, int status, const Headers& headers, bool keep_text) {
  state_ = State::kReading;
  form_ = Form::kUnknown;
  error_ = Error::kNone;
  api_ = api;
  status_ = status;
  is_encoded_ = !headers.is_plain();
  is_too_long_ = is_whole_ = out_of_memory_ = has_token_ = has_usage_ = any_finished_ = false;
  token_events_ = token_pieces_ = 0;
  open_choices_ = 0;
  prompt_ = cached_ = output_ = uncached_ = cache_written_ = Figure();
  text_.begin(keep_text, options_.text_bytes_max);
  text_.shrink(options_.keep_bytes_max);
  events_.shrink(options_.keep_bytes_max);
  events_.begin(options_.answer_bytes_max);
  buffer_.clear();
  buffer_.shrink(options_.keep_bytes_max);
  parser_.shrink(options_.keep_bytes_max);
  const std::string_view type = headers.find("content-type");
  if (is_encoded_) {
    form_ = Form::kUnread;
  } else if (equal_nocase(trimmed(type.substr(0, type.find(';'))), "text/event-stream")) {
    form_ = Form::kEvents;
  } else if (!type.empty()) {
    form_ = Form::kJson;
  }
}

int Answer::add(std::string_view bytes) {
  if (state_ != State::kReading) return -EINVAL;
  if (form_ == Form::kUnknown) {
    const int code = find_form(bytes);
    if (code != 0 || form_ == Form::kUnknown) return code;
  }
  if (form_ == Form::kUnread) return 0;
  if (form_ == Form::kJson) return add_json(bytes);

  const bool was_whole = is_whole_, had_usage = has_usage_;
  const std::uint32_t events_before = token_events_;
  has_usage_ = false;
  if (!events_.feed(bytes, *this) || out_of_memory_) return -ENOMEM;
  int came = 0;
  if (token_events_ != events_before) {
    came |= PICKD_ANSWER_TOKENS;
    if (token_pieces_++ == 0) came |= PICKD_ANSWER_FIRST_TOKEN;
  }
  if (has_usage_) came |= PICKD_ANSWER_USAGE;
  if (is_whole_ && !was_whole) came |= PICKD_ANSWER_ENDED;
  has_usage_ = has_usage_ || had_usage;
  return came;
}

// No header told the form: JSON begins with a bracket, events never do. Blanks before it are held.
int Answer::find_form(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return add_json(bytes);
  form_ = bytes[first] == '{' || bytes[first] == '[' ? Form::kJson : Form::kEvents;
  if (form_ == Form::kEvents && !events_.feed(buffer_.text(), *this)) return -ENOMEM;
  return 0;
}

int Answer::add_json(std::string_view bytes) {
  if (is_too_long_) return 0;
  if (bytes.size() > options_.answer_bytes_max - buffer_.size()) {
    is_too_long_ = true;
    buffer_.clear();
    buffer_.shrink(options_.keep_bytes_max);
    return 0;
  }
  return buffer_.append(bytes.data(), bytes.size()) ? 0 : -ENOMEM;
}

int Answer::end() {
  if (state_ != State::kReading) return -EINVAL;
  int code = 0;
  if (is_encoded_) {
    code = -EOPNOTSUPP;
  } else if (is_too_long_) {
    code = -E2BIG;
  } else {
    code = form_ == Form::kEvents ? end_events() : end_json();
  }
  state_ = State::kEnded;
  if (api_ == PICKD_BODY_MESSAGES) text_.canonical_calls(parser_);
  if (text_.out_of_memory() || out_of_memory_) code = -ENOMEM;

  count(options_.counters, Counter::kAnswers);
  if (code == -EBADMSG && form_ == Form::kEvents) {
    count(options_.counters, Counter::kAnswerBroken);
  } else if (code != 0) {
    count(options_.counters, Counter::kAnswerUnread);
  } else if (status_ < 400 && !has_usage_) {
    count(options_.counters, Counter::kAnswerNoUsage);
  }
  return code;
}

int Answer::end_events() {
  if (!events_.finish(*this)) return -ENOMEM;
  // Not every server says [DONE] when each of its choices told why it finished.
  is_whole_ = is_whole_ || (any_finished_ && open_choices_ == 0);
  return is_whole_ || error_ != Error::kNone || status_ >= 400 ? 0 : -EBADMSG;
}

int Answer::end_json() {
  if (buffer_.size() == 0 && (status_ == 204 || status_ >= 400)) return 0;
  Json root;
  if (const int code = parser_.parse(buffer_, root); code != 0) return code;
  is_whole_ = true;
  take(root, true);
  return 0;
}

// ---- Events -------------------------------------------------------------------------------------

void Answer::event(const JsonBuffer& data) {
  if (without_blanks(data.text()) == kDone) {
    is_whole_ = true;
    return;
  }
  Json root;
  switch (parser_.parse(data.data(), data.size(), root)) {
    case ParseResult::kMalformed: count(options_.counters, Counter::kEventsUnread); return;
    case ParseResult::kNoMemory: out_of_memory_ = true; return;
    case ParseResult::kDone: break;
  }
  has_token_ = false;
  take(root, false);
  if (has_token_ && token_events_ != PICKD_UNKNOWN - 1) ++token_events_;
}

void Answer::event_too_long() { count(options_.counters, Counter::kEventsUnread); }

void Answer::take(const Json& root, bool whole) {
  switch (api_) {
    case PICKD_BODY_MESSAGES:
      if (whole) {
        take_messages(root);
      } else {
        take_messages_event(root);
      }
      break;
    case PICKD_BODY_RESPONSES:
      if (whole) {
        take_responses(root, true);
      } else {
        take_responses_event(root);
      }
      break;
    case PICKD_BODY_SGLANG: take_sglang(root); break;
    default: take_openai(root); break;
  }
}

// An error in the body of an answer, whatever its status: a number as of HTTP, or a word.
void Answer::error(const Json& error) {
  if (error.is_null()) return;
  const std::uint32_t code = count_in(error, "code");
  std::string_view type = string_in(error, "type");
  if (type.empty()) type = string_in(error, "code");
  constexpr std::string_view kOfClient[] = {
      "invalid_request_error", "BadRequestError",    "authentication_error", "permission_error",
      "not_found_error",       "NotFoundError",      "request_too_large",    "rate_limit_error",
      "overloaded_error",      "rate_limit_exceeded"};
  bool of_client = code >= 400 && code < 500;
  for (const std::string_view word : kOfClient) of_client = of_client || type == word;
  if (error_ != Error::kOfServer) error_ = of_client ? Error::kOfClient : Error::kOfServer;
}

// ---- The report ---------------------------------------------------------------------------------

pickd_report_kind Answer::kind() const {
  constexpr int kUnavailable = 503;
  if (status_ >= 500 && status_ != kUnavailable) return PICKD_REPORT_FAILED;
  if (status_ >= 400 || error_ == Error::kOfClient) return PICKD_REPORT_CANCELLED;
  if (error_ == Error::kOfServer) return PICKD_REPORT_FAILED;
  // What was not read, or is of no API that is known here, is taken for whole.
  const bool is_read = !is_encoded_ && !is_too_long_ && api_ != PICKD_BODY_UNKNOWN;
  const bool is_empty_on_purpose = status_ == 204 && form_ != Form::kEvents;
  return is_whole_ || !is_read || is_empty_on_purpose ? PICKD_REPORT_DONE : PICKD_REPORT_FAILED;
}

int Answer::report(pickd_report_info& report) const {
  if (state_ == State::kIdle || (state_ == State::kReading && token_pieces_ == 0)) return -EINVAL;
  if (state_ == State::kEnded) {
    report.kind = kind();
  } else {
    report.kind = token_pieces_ == 1 ? PICKD_REPORT_FIRST_TOKEN : PICKD_REPORT_PROGRESS;
  }
  report.prompt_tokens = prompt_.value();
  report.cached_tokens = cached_.value();
  if (uncached_.is_known()) {
    std::uint64_t tokens = uncached_.value();
    if (cached_.is_known()) tokens += cached_.value();
    if (cache_written_.is_known()) tokens += cache_written_.value();
    report.prompt_tokens =
        tokens < PICKD_UNKNOWN ? static_cast<std::uint32_t>(tokens) : PICKD_UNKNOWN - 1;
  }
  Figure output = output_;
  if (form_ == Form::kEvents && token_events_ != 0 &&
      (!output.is_known() || state_ == State::kReading)) {
    output.take(token_events_);
  }
  report.output_tokens = output.value();
  return 0;
}

}  // namespace pickd::body

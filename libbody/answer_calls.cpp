// The C functions on answers: arguments are checked here. And the next turn: an answer behind the
// prompt that it answered.
#include <errno.h>

#include "libbody/answer.hpp"
#include "libbody/body.hpp"
#include "libbody/memory.hpp"
#include "libbody/sized_struct.hpp"

using pickd::body::AnswerOptions;
using pickd::body::Headers;
using pickd::body::MessageWriter;
using pickd::body::PromptStream;

int pickd_answer_new(const pickd_answer_options* options, pickd_answer** answer) {
  if (answer == nullptr) return -EINVAL;
  *answer = nullptr;
  pickd_answer_options given = PICKD_ANSWER_OPTIONS_INIT;
  if (options != nullptr) {
    if (const int code = pickd::body::read_sized(options, &given); code != 0) return code;
  }
  if (given.answer_bytes_max > pickd::body::kBodyBytesMax) return -EINVAL;
  AnswerOptions made;
  if (given.answer_bytes_max != 0) made.answer_bytes_max = given.answer_bytes_max;
  if (given.text_bytes_max != 0) made.text_bytes_max = given.text_bytes_max;
  if (given.keep_bytes_max != 0) made.keep_bytes_max = given.keep_bytes_max;
  made.counters = given.counters;
  *answer = pickd::body::make_object<pickd_answer>(made);
  return *answer == nullptr ? -ENOMEM : 0;
}

void pickd_answer_free(pickd_answer* answer) { delete answer; }

int pickd_answer_begin(pickd_answer* answer, const pickd_answer_head* head) {
  if (answer == nullptr || head == nullptr) return -EINVAL;
  pickd_answer_head given;
  if (const int code = pickd::body::read_sized(head, &given); code != 0) return code;
  int api;  // any number may stand there, and a C++ enum may not hold any number
  static_assert(sizeof api == sizeof given.api);
  std::memcpy(&api, &given.api, sizeof api);
  if (api < PICKD_BODY_UNKNOWN || api > PICKD_BODY_VLLM || given.status < 100 ||
      given.status > 599 || (given.flags & ~PICKD_ANSWER_KEEP_TEXT) != 0) {
    return -EINVAL;
  }
  Headers headers;
  if (const int code = headers.set(given.headers, given.header_count, given.header_stride);
      code != 0) {
    return code;
  }
  answer->begin(static_cast<pickd_body_api>(api), given.status, headers,
                (given.flags & PICKD_ANSWER_KEEP_TEXT) != 0);
  return 0;
}

int pickd_answer_add(pickd_answer* answer, const void* data, size_t size) {
  if (answer == nullptr || (data == nullptr && size != 0)) return -EINVAL;
  if (size == 0) return answer->add({});
  return answer->add({static_cast<const char*>(data), size});
}

int pickd_answer_end(pickd_answer* answer) { return answer == nullptr ? -EINVAL : answer->end(); }

int pickd_answer_report(const pickd_answer* answer, pickd_report_info* report) {
  // The first version of pickd_report_info: a shorter one has never been.
  constexpr std::size_t kFirstBytes =
      offsetof(pickd_report_info, endpoint) + sizeof(report->endpoint);
  if (answer == nullptr || report == nullptr || report->struct_size < kFirstBytes) return -EINVAL;
  return answer->report(*report);
}

int pickd_body_append(pickd_body* body, const pickd_answer* answer) {
  if (body == nullptr || answer == nullptr || !body->has_ended() || !answer->has_ended() ||
      !answer->text().is_kept()) {
    return -EINVAL;
  }
  if (body->has_appended()) return -EEXIST;
  if (answer->text().is_too_long()) return -E2BIG;
  if (!body->can_append() || answer->text().is_empty()) return -ENODATA;
  PromptStream& stream = body->reopen();
  MessageWriter writer(stream, body->canonical(), body->media_tokens());
  const bool is_text = body->api() == PICKD_BODY_COMPLETIONS || body->api() == PICKD_BODY_SGLANG;
  if (is_text || body->is_open_ended()) {
    answer->text().write_text(stream);  // it goes on where the prompt ends
  } else {
    writer.begin("assistant");
    answer->text().write(writer, body->api() == PICKD_BODY_CHAT);
  }
  return body->close();
}

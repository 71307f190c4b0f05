// Answers: usage, first token and how they ended, whatever the pieces that they come in.
#include <random>

#include "tests/libbody/answer_support.hpp"

namespace pickd::body {
namespace {

TEST(AnswerStream, TellsFirstTokenAndUsageOfTheLastEvent) {
  const Answered read(PICKD_BODY_CHAT, chat_stream());
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.report.kind, PICKD_REPORT_DONE);
  expect_usage(read.report, 412, 384, 7);
  EXPECT_EQ(read.came, PICKD_ANSWER_FIRST_TOKEN | PICKD_ANSWER_TOKENS | PICKD_ANSWER_USAGE |
                           PICKD_ANSWER_ENDED);
}

TEST(AnswerStream, MayBeCutAnywhereAndHaveAnyLineEnds) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    const std::string stream = chat_stream(end);
    const std::size_t first = stream.find("Within");
    for (std::size_t step = 1; step <= 200; ++step) {
      const Answered read(PICKD_BODY_CHAT, stream, kEvents, step);
      EXPECT_EQ(read.status, 0) << step;
      expect_usage(read.report, 412, 384, 7);
      EXPECT_EQ(read.first_tokens, 1) << step;
      EXPECT_EQ(read.came, 15) << step;
      EXPECT_GE(read.first_token_at + step, first) << "the role alone is no token";
    }
  }
}

TEST(AnswerStream, OfTwoHalvesCutAtEachByteIsTheSame) {
  const std::string stream = chat_stream("\r\n");
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    pickd_answer* made = nullptr;
    ASSERT_EQ(pickd_answer_new(nullptr, &made), 0);
    const std::unique_ptr<pickd_answer, FreeAnswer> answer(made);
    pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
    head.api = PICKD_BODY_CHAT;  // without headers: told by its first byte
    ASSERT_EQ(pickd_answer_begin(made, &head), 0);
    const int came = pickd_answer_add(made, stream.data(), cut) |
                     pickd_answer_add(made, stream.data() + cut, stream.size() - cut);
    EXPECT_EQ(came, 15) << cut;
    EXPECT_EQ(pickd_answer_end(made), 0);
    pickd_report_info report = PICKD_REPORT_INIT;
    EXPECT_EQ(pickd_answer_report(made, &report), 0);
    expect_usage(report, 412, 384, 7);
  }
}

TEST(AnswerStream, ReportsAsItGoesOn) {
  pickd_answer* made = nullptr;
  ASSERT_EQ(pickd_answer_new(nullptr, &made), 0);
  const std::unique_ptr<pickd_answer, FreeAnswer> answer(made);
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  head.api = PICKD_BODY_CHAT;
  pickd_report_info report = PICKD_REPORT_INIT;
  EXPECT_EQ(pickd_answer_report(made, &report), -EINVAL) << "not begun";
  EXPECT_EQ(pickd_answer_add(made, "x", 1), -EINVAL);
  EXPECT_EQ(pickd_answer_end(made), -EINVAL);
  ASSERT_EQ(pickd_answer_begin(made, &head), 0);
  const auto add = [&](const std::string& bytes) {
    return pickd_answer_add(made, bytes.data(), bytes.size());
  };
  EXPECT_EQ(add(event(delta(R"("role": "assistant", "content": "")"))), 0);
  EXPECT_EQ(pickd_answer_report(made, &report), -EINVAL) << "no token yet";
  EXPECT_EQ(add(event(delta(R"("content": "a")"))), PICKD_ANSWER_FIRST_TOKEN | PICKD_ANSWER_TOKENS);
  ASSERT_EQ(pickd_answer_report(made, &report), 0);
  EXPECT_EQ(report.kind, PICKD_REPORT_FIRST_TOKEN);
  expect_usage(report, PICKD_UNKNOWN, PICKD_UNKNOWN, 1);
  EXPECT_EQ(add(event(delta(R"("content": "b")")) + event(delta(R"("content": "c")"))),
            PICKD_ANSWER_TOKENS);
  ASSERT_EQ(pickd_answer_report(made, &report), 0);
  EXPECT_EQ(report.kind, PICKD_REPORT_PROGRESS);
  EXPECT_EQ(report.output_tokens, 3U);
  EXPECT_EQ(pickd_answer_end(made), -EBADMSG) << "it broke off";
  ASSERT_EQ(pickd_answer_report(made, &report), 0);
  EXPECT_EQ(report.kind, PICKD_REPORT_FAILED);
  EXPECT_EQ(report.output_tokens, 3U) << "as many as events with tokens";
}

TEST(AnswerStream, CountsReasoningAndToolCallsAsTokens) {
  for (const char* fields :
       {R"("reasoning_content": "hm")", R"("reasoning": "hm")", R"("refusal": "no")",
        R"("tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}])"}) {
    const Answered read(PICKD_BODY_CHAT, event(delta(fields)) + event("[DONE]"));
    EXPECT_EQ(read.first_tokens, 1) << fields;
  }
  const Answered silent(PICKD_BODY_CHAT, event(delta("", R"("stop")")) + event("[DONE]"));
  EXPECT_EQ(silent.first_tokens, 1) << "it had nothing to say";
}

TEST(AnswerStream, OfCompletionsIsReadToo) {
  const Answered read(
      PICKD_BODY_COMPLETIONS,
      event(R"({"choices": [{"index": 0, "text": "a", "finish_reason": null}]})") +
          event(R"({"choices": [{"index": 1, "text": "b", "finish_reason": "stop"}]})") +
          event(R"({"choices": [{"index": 0, "text": "", "finish_reason": "length"}], )" +
                usage(9, 2, 0) + "}"));
  EXPECT_EQ(read.status, 0) << "each choice told why it finished";
  expect_usage(read.report, 9, 0, 2);
  const Answered half(
      PICKD_BODY_COMPLETIONS,
      event(R"({"choices": [{"index": 0, "text": "a", "finish_reason": null}]})") +
          event(R"({"choices": [{"index": 1, "text": "b", "finish_reason": "stop"}]})"));
  EXPECT_EQ(half.status, -EBADMSG) << "one of two was cut short";
}

std::string messages_stream(const std::string& start, const std::string& end) {
  return "event: message_start\n" +
         event(R"({"type": "message_start", "message": {"usage": )" + start + "}}") +
         "event: ping\n" + event(R"({"type": "ping"})") +
         event(
             R"({"type": "content_block_start", "index": 0, "content_block": {"type": "text",
            "text": ""}})") +
         event(
             R"({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta",
            "text": "Hi"}})") +
         event(R"({"type": "content_block_stop", "index": 0})") +
         event(R"({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": )" +
               end + "}") +
         event(R"({"type": "message_stop"})");
}

// Field case 98: the usage at the end told no prompt, and overwrote what came before.
TEST(AnswerStream, OfMessagesPutsSplitUsageTogether) {
  const Answered read(
      PICKD_BODY_MESSAGES,
      messages_stream(R"({"input_tokens": 100, "output_tokens": 1})", R"({"output_tokens": 20})"));
  EXPECT_EQ(read.status, 0);
  expect_usage(read.report, 100, PICKD_UNKNOWN, 20);
  EXPECT_EQ(read.came, 15);
  const Answered cached(PICKD_BODY_MESSAGES,
                        messages_stream(R"({"input_tokens": 12, "cache_read_input_tokens": 80,
                          "cache_creation_input_tokens": 8, "output_tokens": 1})",
                                        R"({"input_tokens": 0, "output_tokens": 20})"));
  expect_usage(cached.report, 100, 80, 20);
}

TEST(AnswerStream, OfResponsesIsReadToo) {
  const std::string stream =
      "event: response.created\n" +
      event(R"({"type": "response.created", "response": {"usage": null}})") +
      event(
          R"({"type": "response.output_item.added", "output_index": 0,
            "item": {"type": "message"}})") +
      event(
          R"({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
            "delta": "Hi"})") +
      event(R"({"type": "response.completed", "response": {"usage": {"input_tokens": 50,
            "input_tokens_details": {"cached_tokens": 32}, "output_tokens": 4}}})");
  const Answered read(PICKD_BODY_RESPONSES, stream);
  EXPECT_EQ(read.status, 0);
  expect_usage(read.report, 50, 32, 4);
  EXPECT_EQ(read.came, 15);
}

TEST(AnswerStream, OfSglangIsReadToo) {
  const std::string stream =
      event(
          R"({"text": "Hi", "meta_info": {"prompt_tokens": 9, "cached_tokens": 4,
            "completion_tokens": 1}})") +
      event(
          R"({"text": "Hi you", "meta_info": {"prompt_tokens": 9, "cached_tokens": 4,
            "completion_tokens": 2,
            "finish_reason": {"type": "stop"}}})") +
      event("[DONE]");
  const Answered read(PICKD_BODY_SGLANG, stream);
  EXPECT_EQ(read.first_tokens, 1);
  EXPECT_EQ(read.status, 0);
  expect_usage(read.report, 9, 4, 2);
}

TEST(AnswerStream, PassesOverWhatItCannotRead) {
  pickd_body_counters* counters = pickd_body_counters_new();
  pickd_answer_options options = PICKD_ANSWER_OPTIONS_INIT;
  options.counters = counters;
  options.answer_bytes_max = 300;
  const std::string stream = event("{\"cut") + event("\"text\"") + event(std::string(1000, 'x')) +
                             "id: 7\nretry: 5\nnonsense\n\n" + event(delta(R"("content": "a")")) +
                             event("[DONE]");
  for (const std::size_t step : {std::size_t{1}, std::size_t{50}, std::size_t{5000}}) {
    const Answered read(PICKD_BODY_CHAT, stream, kEvents, step, 200, &options);
    EXPECT_EQ(read.status, 0);
    EXPECT_EQ(read.first_tokens, 1);
  }
  std::uint64_t unread = 0, answers = 0, without_usage = 0;
  for (std::size_t i = 0; const char* name = pickd_body_counter_name(i, nullptr); ++i) {
    const std::uint64_t value = pickd_body_counter_value(counters, i);
    if (std::string(name) == "answer_events_unread_total") unread = value;
    if (std::string(name) == "answers_total") answers = value;
    if (std::string(name) == "answers_without_usage_total") without_usage = value;
  }
  EXPECT_EQ(unread, 6U) << "two in each: the cut one and the long one";
  EXPECT_EQ(answers, 3U);
  EXPECT_EQ(without_usage, 3U);
  pickd_body_counters_free(counters);
}

TEST(AnswerStream, OfLongLinesIsTheSameInPieces) {
  pickd_answer_options options = PICKD_ANSWER_OPTIONS_INIT;
  options.answer_bytes_max = 100;
  const std::string token = R"({"choices": [{"index": 0, "text": "a"}]})";
  for (std::size_t pad = 40; pad < 80; ++pad) {
    const std::string stream =
        ":" + std::string(300, 'c') + "\n" + event(token + std::string(pad, ' ')) + event("[DONE]");
    const Answered whole(PICKD_BODY_COMPLETIONS, stream, kEvents, SIZE_MAX, 200, &options);
    EXPECT_EQ(whole.first_tokens, token.size() + pad < 100 ? 1 : 0) << pad;
    for (const std::size_t step : {1, 7, 90})
      EXPECT_EQ(Answered(PICKD_BODY_COMPLETIONS, stream, kEvents, step, 200, &options).came,
                whole.came);
  }
}

TEST(AnswerStream, WithoutItsLastEmptyLineIsWhole) {
  const Answered read(PICKD_BODY_CHAT, event(delta(R"("content": "a")")) + "data: [DONE]");
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.report.kind, PICKD_REPORT_DONE);
}

TEST(AnswerStream, TellsErrorsOfTheServerFromOthers) {
  const auto kind = [](pickd_body_api api, const std::string& error) {
    return Answered(api, event(error)).report.kind;
  };
  EXPECT_EQ(kind(PICKD_BODY_CHAT,
                 R"({"error": {"message": "x", "type": "InternalServerError", "code": 500}})"),
            PICKD_REPORT_FAILED);
  EXPECT_EQ(kind(PICKD_BODY_CHAT,
                 R"({"error": {"message": "x", "type": "BadRequestError", "code": 400}})"),
            PICKD_REPORT_CANCELLED);
  EXPECT_EQ(kind(PICKD_BODY_MESSAGES, R"({"type": "error", "error": {"type": "api_error"}})"),
            PICKD_REPORT_FAILED);
  EXPECT_EQ(
      kind(PICKD_BODY_MESSAGES, R"({"type": "error", "error": {"type": "invalid_request_error"}})"),
      PICKD_REPORT_CANCELLED);
  EXPECT_EQ(kind(PICKD_BODY_RESPONSES,
                 R"({"type": "response.failed", "response": {"error": {"code": "server_error"}}})"),
            PICKD_REPORT_FAILED);
}

TEST(AnswerStream, WithoutAHeaderIsToldByItsFirstBytesInWhateverPiecesTheyCome) {
  const std::string tokens = event(delta(R"("content": "a")")) + event("[DONE]");
  for (const std::string before : {"", "\r\n", "\xEF\xBB\xBF", " ", "\xEF"}) {
    const Answered whole(PICKD_BODY_CHAT, before + tokens, "");
    const Answered bytes(PICKD_BODY_CHAT, before + tokens, "", 1);
    EXPECT_EQ(whole.came, bytes.came) << before;
    EXPECT_EQ(whole.first_tokens, before == " " || before == "\xEF" ? 0 : 1)
        << "no field has that name";
  }
  const std::string json = "\xEF\xBB\xBF \n{" + usage(3, 2, 1) + "}";
  expect_usage(Answered(PICKD_BODY_CHAT, json, "", 1).report, 3, 1, 2);
}

TEST(AnswerWhole, TellsUsageAndNoFirstToken) {
  const std::string chat =
      R"({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"},
      "finish_reason": "stop"}], )" +
      usage(412, 7, 384) + "}";
  for (const std::size_t step : {std::size_t{1}, std::size_t{13}, std::size_t{10000}}) {
    const Answered read(PICKD_BODY_CHAT, chat, kJson, step);
    EXPECT_EQ(read.status, 0);
    EXPECT_EQ(read.came, 0);
    EXPECT_EQ(read.report.kind, PICKD_REPORT_DONE);
    expect_usage(read.report, 412, 384, 7);
  }
  expect_usage(Answered(PICKD_BODY_CHAT, chat, "").report, 412, 384, 7);
  expect_usage(Answered(PICKD_BODY_MESSAGES, R"({"content": [], "usage": {"input_tokens": 5,
      "cache_read_input_tokens": 3, "output_tokens": 2}})",
                        kJson)
                   .report,
               8, 3, 2);
  expect_usage(Answered(PICKD_BODY_RESPONSES, R"({"output": [], "usage": {"input_tokens": 5,
      "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}}})",
                        kJson)
                   .report,
               5, 3, 2);
  expect_usage(Answered(PICKD_BODY_SGLANG,
                        R"([{"text": "a", "meta_info": {"prompt_tokens": 5, "completion_tokens": 2,
      "cached_tokens": 3}}, {"text": "b", "meta_info": {"prompt_tokens": 4,
            "completion_tokens": 1}}])",
                        kJson)
                   .report,
               9, 3, 3);
  expect_usage(Answered(PICKD_BODY_EMBEDDINGS,
                        R"({"data": [{"embedding": [0.5, -1e-3]}], "usage": {"prompt_tokens": 6,
      "total_tokens": 6}})",
                        kJson)
                   .report,
               6, PICKD_UNKNOWN, PICKD_UNKNOWN);
}

TEST(AnswerWhole, IsReportedByItsStatusAndItsForm) {
  const auto kind = [](int status, const std::string& body) {
    return Answered(PICKD_BODY_CHAT, body, kJson, SIZE_MAX, status).report.kind;
  };
  EXPECT_EQ(kind(500, "oops"), PICKD_REPORT_FAILED);
  EXPECT_EQ(kind(502, ""), PICKD_REPORT_FAILED);
  EXPECT_EQ(kind(503, ""), PICKD_REPORT_CANCELLED);
  EXPECT_EQ(kind(429, R"({"error": {"code": 429}})"), PICKD_REPORT_CANCELLED);
  EXPECT_EQ(kind(400, R"({"error": {"code": 400}})"), PICKD_REPORT_CANCELLED);
  EXPECT_EQ(kind(200, R"({"choices": [)"), PICKD_REPORT_FAILED) << "it broke off";
  EXPECT_EQ(kind(200, ""), PICKD_REPORT_FAILED);
  EXPECT_EQ(kind(204, ""), PICKD_REPORT_DONE);
  EXPECT_EQ(Answered(PICKD_BODY_UNKNOWN, "\x1F\x8B sound", "audio/mpeg").report.kind,
            PICKD_REPORT_DONE);
}

TEST(AnswerWhole, ThatIsCompressedOrTooLongIsDoneWithoutUsage) {
  const Answered zipped(PICKD_BODY_CHAT, "\x1F\x8B", kJson, SIZE_MAX, 200, nullptr,
                        {{"content-encoding", "gzip"}});
  EXPECT_EQ(zipped.status, -EOPNOTSUPP);
  EXPECT_EQ(zipped.report.kind, PICKD_REPORT_DONE);
  expect_usage(zipped.report, PICKD_UNKNOWN, PICKD_UNKNOWN, PICKD_UNKNOWN);
  pickd_answer_options options = PICKD_ANSWER_OPTIONS_INIT;
  options.answer_bytes_max = 100;
  const Answered longer(PICKD_BODY_CHAT, R"({"x": ")" + std::string(200, 'x') + R"("})", kJson, 64,
                        200, &options);
  EXPECT_EQ(longer.status, -E2BIG);
  EXPECT_EQ(longer.report.kind, PICKD_REPORT_DONE);
}

TEST(AnswerHandle, RefusesWhatCannotBe) {
  pickd_answer* made = nullptr;
  EXPECT_EQ(pickd_answer_new(nullptr, nullptr), -EINVAL);
  pickd_answer_options options = PICKD_ANSWER_OPTIONS_INIT;
  options.answer_bytes_max = SIZE_MAX;
  EXPECT_EQ(pickd_answer_new(&options, &made), -EINVAL);
  ASSERT_EQ(pickd_answer_new(nullptr, &made), 0);
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  head.status = 99;
  EXPECT_EQ(pickd_answer_begin(made, &head), -EINVAL);
  head = PICKD_ANSWER_HEAD_INIT;
  head.flags = 2;
  EXPECT_EQ(pickd_answer_begin(made, &head), -EINVAL);
  head = PICKD_ANSWER_HEAD_INIT;
  const int number = 99;
  std::memcpy(&head.api, &number, sizeof number);
  EXPECT_EQ(pickd_answer_begin(made, &head), -EINVAL);
  pickd_answer_free(made);
  pickd_answer_free(nullptr);
}

TEST(AnswerBytes, AtRandomNeverHarm) {
  std::mt19937 random(11);
  const std::string good = chat_stream() + messages_stream(R"({"input_tokens": 1})", "{}");
  for (int round = 0; round < 2000; ++round) {
    std::string stream = good;
    for (int i = 0; i < 5; ++i)
      stream[random() % stream.size()] = "{}[]\",:\n\r d\\"[random() % 12];
    const auto api = static_cast<pickd_body_api>(random() % 8);
    const Answered read(api, stream, random() % 2 == 0 ? kEvents : "", 1 + random() % 300);
    EXPECT_TRUE(read.report.output_tokens == PICKD_UNKNOWN || read.report.output_tokens < 1000);
  }
}

}  // namespace
}  // namespace pickd::body

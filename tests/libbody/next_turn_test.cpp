// The answer behind its prompt: what the next turn will say, byte for byte.
#include "tests/libbody/answer_support.hpp"

namespace pickd::body {
namespace {

// The prompt of a body with its answer behind it.
std::string appended(Read& body, const Answered& answer, int expected = 0) {
  EXPECT_EQ(pickd_body_append(body.get(), answer.get()), expected);
  return body.text();
}

const std::string kPolicy = long_text(1500);

TEST(NextTurn, OfAChatIsMatchedWithTheAnswer) {
  Read first(kChat, chat(message("user", kPolicy)));
  const std::string text = long_text(900, "answer");
  std::string stream = event(delta(R"("role": "assistant", "content": "")"));
  for (std::size_t at = 0; at < text.size(); at += 7)
    stream += event(delta(R"("content": ")" + text.substr(at, 7) + R"(")"));
  stream += event(delta("", R"("stop")")) + event("[DONE]");
  const std::string prompt = appended(first, Answered(PICKD_BODY_CHAT, stream));
  const Read second(kChat, chat(message("user", kPolicy) + "," + message("assistant", text) + "," +
                                message("user", "And then?")));
  EXPECT_TRUE(second.text().starts_with(prompt));
  EXPECT_EQ(shared(first.keys(), second.keys()), prompt.size() / kBlockBytes);
  EXPECT_GT(prompt.size(), kPolicy.size() + text.size());
  EXPECT_EQ(pickd_body_append(first.get(), Answered(PICKD_BODY_CHAT, stream).get()), -EEXIST);
}

TEST(NextTurn, KeepsReasoningAndToolCalls) {
  const std::string stream =
      event(delta(R"("reasoning_content": "let me ")")) +
      event(delta(R"("reasoning_content": "see")")) + event(delta(R"("content": "I look.")")) +
      event(delta(
          R"("tool_calls": [{"index": 0, "id": "c1", "function": {"name": "stock",
            "arguments": ""}}])")) +
      event(delta(R"("tool_calls": [{"index": 0, "function": {"arguments": "{\"sku\":"}}])")) +
      event(delta(R"("tool_calls": [{"index": 0, "function": {"arguments": " 4471}"}}])")) +
      event(delta(
          R"("tool_calls": [{"index": 1, "id": "c2", "function": {"name": "hours",
            "arguments": "{}"}}])")) +
      event("[DONE]");
  const std::string said =
      R"({"role": "assistant", "reasoning_content": "let me see", "content": "I look.",
      "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "stock",
            "arguments": "{\"sku\": 4471}"}},
                     {"id": "c2", "type": "function", "function": {"name": "hours",
            "arguments": "{}"}}]})";
  Read first(kChat, chat(message("user", "x")));
  EXPECT_EQ(appended(first, Answered(PICKD_BODY_CHAT, stream)),
            Read(kChat, chat(message("user", "x") + "," + said)).text());
  Read whole(kChat, chat(message("user", "x")));
  EXPECT_EQ(
      appended(whole, Answered(PICKD_BODY_CHAT,
                               R"({"choices": [{"index": 0, "message": )" + said + "}]}", kJson)),
      first.text());
}

TEST(NextTurn, OfMessagesKeepsCallsAsTheirObjects) {
  const std::string stream =
      event(
          R"({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking",
            "thinking": ""}})") +
      event(R"({"type": "content_block_delta", "index": 0, "delta": {"thinking": "hm"}})") +
      event(
          R"({"type": "content_block_start", "index": 1, "content_block": {"type": "text",
            "text": ""}})") +
      event(R"({"type": "content_block_delta", "index": 1, "delta": {"text": "I look."}})") +
      event(
          R"({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use",
            "name": "stock", "input": {}}})") +
      event(
          R"({"type": "content_block_delta", "index": 2,
            "delta": {"partial_json": "{\"sku\": 4471,"}})") +
      event(
          R"({"type": "content_block_delta", "index": 2,
            "delta": {"partial_json": " \"a\": [1]}"}})") +
      event(
          R"({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use",
            "name": "hours"}})") +
      event(R"({"type": "message_stop"})");
  const std::string said =
      R"([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "t1", "name": "stock", "input": {"a": [1], "sku": 4471}},
      {"type": "tool_use", "id": "t2", "name": "hours", "input": {}}])";
  const std::string ask = R"({"model": "m", "messages": [)" + message("user", "x");
  Read first(kMessages, ask + "]}");
  EXPECT_EQ(appended(first, Answered(PICKD_BODY_MESSAGES, stream)),
            Read(kMessages, ask + R"(, {"role": "assistant", "content": )" + said + "}]}").text());
  Read whole(kMessages, ask + "]}");
  EXPECT_EQ(appended(whole, Answered(PICKD_BODY_MESSAGES, R"({"content": )" + said + "}", kJson)),
            first.text());
  Read begun(kMessages, ask + "," + message("assistant", "I") + "]}");
  EXPECT_EQ(
      appended(begun,
               Answered(PICKD_BODY_MESSAGES,
                        event(R"({"type": "content_block_delta", "delta": {"text": " look."}})") +
                            event(R"({"type": "message_stop"})"))),
      Read(kMessages, ask + "," + message("assistant", "I look.") + "]}").text())
      << "the answer goes on with what the caller began";
}

TEST(NextTurn, OfResponsesIsItsItems) {
  const std::string stream =
      event(
          R"({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0,
            "delta": "hm"})") +
      event(
          R"({"type": "response.output_text.delta", "output_index": 1, "content_index": 0,
            "delta": "I look."})") +
      event(
          R"({"type": "response.output_item.added", "output_index": 2,
            "item": {"type": "function_call", "name": "stock"}})") +
      event(
          R"({"type": "response.function_call_arguments.delta", "output_index": 2,
            "delta": "{}"})") +
      event(R"({"type": "response.completed", "response": {}})");
  const std::string output =
      R"({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text",
            "text": "I look."}]},
      {"type": "function_call", "call_id": "c", "name": "stock", "arguments": "{}"})";
  const std::string ask = R"({"model": "m", "input": [)" + message("user", "x");
  Read first(kResponses, ask + "]}");
  EXPECT_EQ(appended(first, Answered(PICKD_BODY_RESPONSES, stream)),
            Read(kResponses, ask + "," + output + "]}").text());
  Read whole(kResponses, ask + "]}");
  EXPECT_EQ(
      appended(whole, Answered(PICKD_BODY_RESPONSES, R"({"output": [)" + output + "]}", kJson)),
      first.text());
}

TEST(NextTurn, OfACompletionGoesOn) {
  Read first(kCompletions, R"({"prompt": "Once"})");
  EXPECT_EQ(appended(first, Answered(PICKD_BODY_COMPLETIONS,
                                     R"({"choices": [{"text": " upon a time"}]})", kJson)),
            "Once upon a time");
  Read sglang(kSglang, R"({"text": "Once"})");
  EXPECT_EQ(appended(sglang, Answered(PICKD_BODY_SGLANG, event(R"({"text": " upon"})") +
                                                             event(R"({"text": " upon a"})") +
                                                             event("[DONE]"))),
            "Once upon a");
  Read open(kChat, chat(message("user", "x") + "," + message("assistant", "On"),
                        R"("continue_final_message": true, )"));
  EXPECT_TRUE(appended(open, Answered(PICKD_BODY_CHAT,
                                      event(delta(R"("content": "ce")")) + event("[DONE]")))
                  .ends_with("assistant\xFEOnce"));
}

TEST(NextTurn, IsNotWhereThereIsNone) {
  const Answered answer(PICKD_BODY_CHAT, event(delta(R"("content": "a")")) + event("[DONE]"));
  const Answered silent(PICKD_BODY_CHAT, event("[DONE]"));
  Read several(kChat, chat(message("user", "x"), R"("n": 2, )"));
  appended(several, answer, -ENODATA);
  Read tokens(kCompletions, R"({"prompt": [1, 2]})");
  appended(tokens, answer, -ENODATA);
  Read broken(kChat, "{");
  appended(broken, answer, -ENODATA);
  Read plain(kChat, chat(message("user", "x")));
  appended(plain, silent, -ENODATA);
  EXPECT_EQ(pickd_body_append(plain.get(), nullptr), -EINVAL);
  pickd_answer_options options = PICKD_ANSWER_OPTIONS_INIT;
  options.text_bytes_max = 10;
  const Answered longer(
      PICKD_BODY_CHAT,
      event(delta(R"("content": "0123456789")")) + event(delta(R"("content": "0")")), kEvents,
      SIZE_MAX, 200, &options);
  appended(plain, longer, -E2BIG);
}

}  // namespace
}  // namespace pickd::body

// Chat completions: what belongs to the prefix, and what does not.
#include "tests/libbody/support.hpp"

namespace pickd::body {
namespace {

const std::string kPolicy = long_text(1500);

TEST(Chat, IsRolesAndTextsInOrder) {
  const Read read(kChat, chat(message("system", "Be brief.") + "," + message("user", "Hi")));
  ASSERT_EQ(read.status, 0);
  EXPECT_EQ(read.model(), "m");
  EXPECT_EQ(read.info.api, PICKD_BODY_CHAT);
  EXPECT_EQ(read.text(),
            "\xFFMsystem\xFE"
            "Be brief.\xFFMuser\xFEHi");
  EXPECT_EQ(read.request().prompt_tokens, (read.text().size() + 3) / 4);
}

TEST(Chat, OfTheNextTurnContinuesTheOneBefore) {
  const std::string first = message("system", kPolicy) + "," + message("user", "Returns?");
  const Read one(kChat, chat(first));
  const Read two(kChat, R"({"temperature": 0.2, "messages": [)" + first + "," +
                            message("assistant", "Within 30 days.") + "," +
                            message("user", "And frames?") + R"(], "top_p": 1, "model": "m"})");
  EXPECT_TRUE(two.text().starts_with(one.text()));
  const std::size_t whole_blocks = one.text().size() / kBlockBytes;
  ASSERT_GE(whole_blocks, 5U);
  EXPECT_EQ(shared(one.keys(), two.keys()), whole_blocks);
}

TEST(Chat, HasOneFormForATextAndForAPartOfText) {
  const Read text(kChat, chat(message("user", kPolicy)));
  const Read part(kChat, chat(R"({"content": [{"text": )" + json_string(kPolicy) +
                              R"(, "type": "text"}], "role": "user"})"));
  EXPECT_EQ(text.keys(), part.keys());
  EXPECT_FALSE(text.keys().empty());
}

TEST(Chat, TellsPartsFromOneText) {
  const auto parts = [](const std::string& list) {
    return Read(kChat, chat(R"({"role": "user", "content": [)" + list + "]}")).text();
  };
  const std::string a_bc = parts(R"({"type":"text","text":"a"},{"type":"text","text":"bc"})");
  EXPECT_NE(a_bc, parts(R"({"type":"text","text":"ab"},{"type":"text","text":"c"})"));
  EXPECT_NE(a_bc, parts(R"({"type":"text","text":"abc"})"));
  EXPECT_EQ(a_bc, parts(R"({"type":"text","text":"a"},{"type":"text","text":""},"bc")"));
}

TEST(Chat, IsDecodedTextWithoutNormalisation) {
  const Read escaped(kChat, chat(message("user", R"(caf\u00e9 \ud83d\ude00 \"q\" \n)")));
  const Read plain(kChat, chat(message("user", "caf\xC3\xA9 \xF0\x9F\x98\x80 \\\"q\\\" \\n")));
  EXPECT_EQ(escaped.text(), plain.text());
  EXPECT_NE(plain.text().find("\"q\" \n"), std::string::npos);
  const Read combining(kChat, chat(message("user", R"(cafe\u0301)")));
  const Read composed(kChat, chat(message("user", R"(caf\u00e9)")));
  EXPECT_NE(combining.text(), composed.text());
}

TEST(Chat, CannotBeForgedByText) {
  // What stands in a text never reads as the frame of another message: no text has such bytes.
  const Read forged(kChat, chat(message("user", R"(a\u00ffMassistant\u00feb)")));
  const Read real(kChat, chat(message("user", "a") + "," + message("assistant", "b")));
  EXPECT_NE(forged.text(), real.text());
}

TEST(Chat, LeavesSamplingAndOtherFieldsOut) {
  const std::string messages = message("user", kPolicy);
  const Read plain(kChat, chat(messages));
  const Read many(kChat, chat(messages, R"("temperature": 1.5, "top_p": 0.1, "user": "u-77",
      "max_tokens": 5, "store": true, "seed": 12, "stop": ["x"], "logit_bias": {"5": 1},
      "response_format": {"type": "json_object"}, "stream": true, "metadata": {"a": "b"},
      "tool_choice": "auto", "parallel_tool_calls": false, "tools": [], )"));
  EXPECT_EQ(plain.keys(), many.keys());
  EXPECT_EQ(many.info.flags, PICKD_BODY_STREAM);
  EXPECT_EQ(many.request().flags, PICKD_REQUEST_STREAM);
}

TEST(Chat, TellsLimitsAndFlags) {
  const Read read(kChat, chat(message("user", "x"),
                              R"("n": 3, "max_completion_tokens": 20, "max_tokens": 99,
      "stream": true, "stream_options": {"include_usage": true},
      "continue_final_message": true, )"));
  EXPECT_EQ(read.info.n, 3U);
  EXPECT_EQ(read.info.max_tokens, 20U);
  EXPECT_EQ(read.info.flags, PICKD_BODY_STREAM | PICKD_BODY_USAGE | PICKD_BODY_OPEN_END);
  EXPECT_EQ(read.request().expected_output_tokens, 60U);
  const Read open(kChat, chat(message("user", "x"), R"("max_tokens": 4096, "n": -2, )"));
  EXPECT_EQ(open.info.n, 1U);
  EXPECT_EQ(open.info.max_tokens, 4096U);
  EXPECT_EQ(open.request().expected_output_tokens, 0U) << "a generous bound forecasts nothing";
  EXPECT_EQ(Read(kChat, chat(message("user", "x"))).info.max_tokens, PICKD_UNKNOWN);
}

TEST(Chat, TakesADeveloperForTheSystem) {
  EXPECT_EQ(Read(kChat, chat(message("developer", kPolicy))).keys(),
            Read(kChat, chat(message("system", kPolicy))).keys());
  EXPECT_TRUE(share_nothing(Read(kChat, chat(message("user", kPolicy))).keys(),
                            Read(kChat, chat(message("system", kPolicy))).keys()));
}

TEST(Chat, PutsWhatChangesTheTemplateFirst) {
  const Read plain(kChat, chat(message("user", kPolicy)));
  for (const std::string field :
       {R"("reasoning_effort": "high", )", R"("chat_template": "{{ x }}", )",
        R"("chat_template_kwargs": {"enable_thinking": false}, )",
        R"("documents": [{"title": "Manual", "text": "8 Nm"}], )",
        R"("thinking": {"type": "disabled"}, )", R"("truncate_prompt_tokens": 100, )",
        R"("mm_processor_kwargs": {"fps": 1}, )", R"("add_special_tokens": true, )"}) {
    const Read changed(kChat, chat(message("user", kPolicy), field));
    EXPECT_TRUE(share_nothing(plain.keys(), changed.keys())) << field;
    EXPECT_EQ(changed.keys(), Read(kChat, chat(message("user", kPolicy), field)).keys()) << field;
  }
  for (const std::string field : {R"("documents": [], )", R"("chat_template_kwargs": {}, )",
                                  R"("reasoning_effort": null, )"}) {
    EXPECT_EQ(plain.keys(), Read(kChat, chat(message("user", kPolicy), field)).keys()) << field;
  }
}

TEST(Chat, OfBlanksOnlyHasNoPrompt) {
  const Read read(kChat, chat(R"({"role": "system", "content": ""}, {"role": "user", "content": []},
      {"role": "assistant", "content": null}, {"role": "user", "content": " \n"},
      {"role": "user"})"));
  EXPECT_EQ(read.status, 0);
  EXPECT_TRUE(read.keys().empty());
  EXPECT_EQ(read.model(), "m");
  EXPECT_EQ(Read(kChat, chat("")).status, 0);
}

TEST(Chat, WithoutMessagesIsRefused) {
  for (const std::string body :
       {R"({"model": "m"})", R"({"model": "m", "messages": null})",
        R"({"model": "m", "messages": "hi"})", R"({"model": "m", "messages": ["hi"]})",
        R"({"model": "m", "messages": [[]]})"}) {
    const Read read(kChat, body);
    EXPECT_EQ(read.status, -EINVAL) << body;
    EXPECT_EQ(read.model(), "m") << body;
    EXPECT_TRUE(read.keys().empty()) << body;
  }
}

// ---- Tools --------------------------------------------------------------------------------------

const std::string kStock =
    R"({"type": "function", "function": {"name": "stock",
        "parameters": {"a": 1, "b": [true, null]}}})";
const std::string kReserve =
    R"({"type": "function", "function": {"name": "reserve", "parameters": {"type": "object"}}})";

std::string with_tools(const std::string& tools) {
  return chat(message("user", kPolicy), R"("tools": [)" + tools + "], ");
}

TEST(ChatTools, StandBeforeTheMessagesInTheirOrder) {
  const Read ab(kChat, with_tools(kStock + "," + kReserve));
  const Read ba(kChat, with_tools(kReserve + "," + kStock));
  EXPECT_TRUE(share_nothing(ab.keys(), ba.keys()));
  EXPECT_TRUE(share_nothing(ab.keys(), Read(kChat, chat(message("user", kPolicy))).keys()));
  EXPECT_EQ(ab.keys(), Read(kChat, with_tools(kStock + ", \n" + kReserve)).keys());
}

TEST(ChatTools, DoNotDependOnTheOrderOfKeys) {
  const std::string turned =
      R"({"function": {"parameters": {"b": [true,null], "a": 1}, "name": "stock"},
          "type": "function"})";
  EXPECT_EQ(Read(kChat, with_tools(kStock)).keys(), Read(kChat, with_tools(turned)).keys());
}

TEST(ChatTools, DifferInEveryValue) {
  const std::vector<std::string> tools = {R"({"a": 1})",     R"({"a": "1"})",
                                          R"({"a": 1.0})",   R"({"a": -1})",
                                          R"({"a": true})",  R"({"a": false})",
                                          R"({"a": null})",  R"({"a": []})",
                                          R"({"a": {}})",    R"({"a": [1]})",
                                          R"({"a": [[1]]})", R"({"a": {"b":1}})",
                                          R"({"b": 1})",     R"({})",
                                          R"(["a", 1])",     R"({"a": "x", "b": "y"})",
                                          R"({"a": "xby"})", R"({"a": [1, 2]})",
                                          R"({"a": [12]})",  R"({"a": 18446744073709551615})",
                                          R"({"a": 1e300})"};
  std::vector<std::string> texts;
  for (const std::string& tool : tools) texts.push_back(Read(kChat, with_tools(tool)).text());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_FALSE(texts[i].empty()) << tools[i];
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(texts[i], texts[j]) << tools[i] << tools[j];
  }
  EXPECT_EQ(texts[0], Read(kChat, with_tools(R"({"a": 7, "a": 1})")).text()) << "the last counts";
  EXPECT_EQ(texts[0],
            Read(kChat, with_tools(R"({"a": 1, "cache_control": {"type": "ephemeral"}})")).text());
}

std::string call(const std::string& id, const std::string& arguments) {
  return R"({"role": "assistant", "content": null, "tool_calls": [{"id": ")" + id +
         R"(", "type": "function", "function": {"name": "stock", "arguments": )" + arguments +
         "}}]}";
}

TEST(ChatTools, CallsAndResultsArePrefixOfTheNextTurn) {
  const std::string first = message("user", kPolicy);
  const std::string result = R"({"role": "tool", "tool_call_id": "c1", "content": "12 left"})";
  const Read asked(kChat, chat(first));
  const Read called(kChat, chat(first + "," + call("c1", R"("{\"sku\": 4471}")")));
  const Read done(kChat, chat(first + "," + call("c1", R"("{\"sku\": 4471}")") + "," + result));
  EXPECT_TRUE(called.text().starts_with(asked.text()));
  EXPECT_TRUE(done.text().starts_with(called.text()));
  EXPECT_NE(called.text().find(R"({"sku": 4471})"), std::string::npos) << "hashed as text";
  EXPECT_NE(done.text().find("12 left"), std::string::npos);
  EXPECT_NE(called.text(),
            Read(kChat, chat(first + "," + call("c1", R"("{\"sku\": 4472}")"))).text());
  EXPECT_EQ(called.text(),
            Read(kChat, chat(first + "," + call("c9", R"("{\"sku\": 4471}")"))).text())
      << "the number of a call is not printed";
  EXPECT_NE(asked.text(), called.text());
}

TEST(ChatTools, CallsOfTheOldFormCount) {
  const std::string old = R"({"role": "assistant", "content": null,
      "function_call": {"name": "stock", "arguments": "{}"}})";
  EXPECT_EQ(Read(kChat, chat(old)).text(), Read(kChat, chat(call("x", R"("{}")"))).text());
}

TEST(ChatTools, ReasoningStandsBeforeTheText) {
  const Read read(kChat,
                  chat(R"({"role": "assistant", "content": "so", "reasoning_content": "hm"})"));
  EXPECT_EQ(read.text(), "\xFFMassistant\xFE\xFFRhm\xFFPso");
}

// ---- Media --------------------------------------------------------------------------------------

std::string with_part(const std::string& part, const std::string& before = kPolicy,
                      const std::string& after = "") {
  return chat(R"({"role": "user", "content": [{"type": "text", "text": )" + json_string(before) +
              "}, " + part + R"(, {"type": "text", "text": ")" + after + R"("}]})");
}
std::string image(const std::string& url) {
  return R"({"type": "image_url", "image_url": {"url": )" + json_string(url) +
         R"(, "detail": "auto"}})";
}

TEST(ChatMedia, DivergeAtTheImage) {
  const Read a(kChat, with_part(image("https://images.example/a.jpg"), kPolicy, kPolicy));
  const Read b(kChat, with_part(image("https://images.example/a.jpg?v=2"), kPolicy, kPolicy));
  const std::size_t before = (kPolicy.size() + 7) / kBlockBytes;  // with the frame of the message
  EXPECT_EQ(shared(a.keys(), b.keys()), before);
  Keys tail_a = a.keys(), tail_b = b.keys();
  tail_a.erase(tail_a.begin(), tail_a.begin() + static_cast<std::ptrdiff_t>(before));
  tail_b.erase(tail_b.begin(), tail_b.begin() + static_cast<std::ptrdiff_t>(before));
  EXPECT_TRUE(share_nothing(tail_a, tail_b));
  EXPECT_EQ(a.info.media_count, 1U);
  EXPECT_EQ(a.request().flags, PICKD_REQUEST_MEDIA);
}

TEST(ChatMedia, InAShortPromptStillTellItFromOthers) {
  const Read a(kChat, with_part(image("https://images.example/a.jpg"), "Is it worn?"));
  const Read b(kChat, with_part(image("https://images.example/b.jpg"), "Is it worn?"));
  EXPECT_TRUE(share_nothing(a.keys(), b.keys()));
}

TEST(ChatMedia, AreTheSameAtTheSamePlace) {
  const Read a(kChat, with_part(image("https://images.example/a.jpg"), kPolicy, "one"));
  const Read b(kChat, with_part(image("https://images.example/a.jpg"), kPolicy, "two"));
  EXPECT_GE(shared(a.keys(), b.keys()), (kPolicy.size() + 576 * 4) / kBlockBytes);
  EXPECT_NE(a.keys(), b.keys());
}

TEST(ChatMedia, WithEqualEndsOfTheirNamesDiffer) {
  const auto uuid = [](const std::string& name) {
    return Read(kChat, with_part(R"({"type": "image_url", "image_url": null, "uuid": )" +
                                 json_string(name) + "}"));
  };
  EXPECT_NE(uuid("90aa11c0ffee1234").keys(), uuid("11bb22d0d0d01234").keys());
  EXPECT_EQ(uuid("90aa11c0ffee1234").keys(), uuid("90aa11c0ffee1234").keys());
}

TEST(ChatMedia, OfEachKindHaveAnIdentity) {
  const std::vector<std::string> parts = {
      image("https://x.example/1"),
      R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})",
      R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAB"}})",
      R"({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}})",
      R"({"type": "input_audio", "input_audio": {"data": "UklH", "format": "wav"}})",
      R"({"type": "audio_url", "audio_url": {"url": "https://x.example/1"}})",
      R"({"type": "video_url", "video_url": {"url": "https://x.example/1"}})",
      R"({"type": "file", "file": {"file_id": "f1"}})",
      R"({"type": "hologram", "hologram": {"url": "https://x.example/1"}})"};
  std::vector<Keys> keys;
  for (const std::string& part : parts) {
    const Read read(kChat, with_part(part, "look", kPolicy));
    EXPECT_EQ(read.status, 0) << part;
    EXPECT_NE(read.text().find(kPolicy), std::string::npos) << "text behind it counts: " << part;
    for (const Keys& other : keys) EXPECT_TRUE(share_nothing(read.keys(), other)) << part;
    keys.push_back(read.keys());
  }
}

TEST(ChatMedia, TakeAsManyBytesAsTheyAreToldToHaveTokens) {
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.media_tokens = 1000;
  const Read read(kChat, with_part(image("https://x.example/1"), "a"), {}, {}, SIZE_MAX, &options);
  EXPECT_GE(read.request().prompt_tokens, 1000U);
  EXPECT_LE(read.request().prompt_tokens, 1010U);
}

TEST(ChatMedia, InThousandsDoNotTakeMemoryForEach) {
  std::string parts = image("https://x.example/0");
  for (int i = 1; i < 5000; ++i) parts += "," + image("u" + std::to_string(i));
  const Read read(kChat, with_part(parts));
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.info.media_count, 5000U);
  EXPECT_LT(read.text().size(), std::size_t{256} * 576 * 4 + 5000 * 32 + 4096);
}

}  // namespace
}  // namespace pickd::body

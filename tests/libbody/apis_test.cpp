// Anthropic's messages and OpenAI's responses.
#include "tests/libbody/support.hpp"

namespace pickd::body {
namespace {

const std::string kPolicy = long_text(1500);

std::string messages(const std::string& list, const std::string& fields = "") {
  return R"({"model": "m", "max_tokens": 1024, )" + fields + R"("messages": [)" + list + "]}";
}
std::string system_text(const std::string& text) {
  return R"("system": )" + json_string(text) + ", ";
}

// ---- Anthropic ----------------------------------------------------------------------------------

TEST(Messages, AreToolsThenSystemThenMessages) {
  const Read read(kMessages,
                  messages(message("user", "Hi"),
                           system_text("Be brief.") + R"("tools": [{"name": "stock"}], )"));
  ASSERT_EQ(read.status, 0);
  EXPECT_EQ(read.info.api, PICKD_BODY_MESSAGES);
  EXPECT_EQ(read.info.max_tokens, 1024U);
  EXPECT_EQ(read.text(),
            "\xFFT\xFF{name\xFEstock\xFE\xFF}\xFFMsystem\xFE"
            "Be brief.\xFFMuser\xFEHi");
}

// Field case 82.
TEST(Messages, OfTheSameBodyMatchTheSecondTime) {
  const std::string body = messages(message("user", kPolicy), system_text(kPolicy));
  const Keys first = Read(kMessages, body).keys();
  EXPECT_GE(first.size(), 12U);
  EXPECT_EQ(first, Read(kMessages, body).keys());
}

TEST(Messages, TakeSystemTextAsOneStringOrAsParts) {
  const Read text(kMessages, messages(message("user", "Hi"), system_text(kPolicy)));
  const Read parts(kMessages,
                   messages(message("user", "Hi"),
                            R"("system": [{"type": "text", "text": )" + json_string(kPolicy) +
                                R"(, "cache_control": {"type": "ephemeral"}}], )"));
  EXPECT_EQ(text.keys(), parts.keys());
}

TEST(Messages, DoNotSeeMarksOfCachesMove) {
  const std::string text = R"({"type": "text", "text": )" + json_string(kPolicy);
  const auto with = [&](const std::string& part) {
    return Read(kMessages, messages(R"({"role": "user", "content": [)" + part + "]}")).keys();
  };
  EXPECT_EQ(with(text + "}"), with(text + R"(, "cache_control": {"type": "ephemeral"}})"));
  const std::string image =
      R"({"type": "image", "source": {"type": "url", "url": "https://x.example/1"})";
  EXPECT_EQ(with(image + "}"), with(image + R"(, "cache_control": {"type": "ephemeral"}})"));
}

TEST(Messages, LeaveBillingLinesOut) {
  const auto with = [](const std::string& line) {
    return Read(kMessages,
                messages(message("user", "Hi"), R"("system": [{"type": "text", "text": ")" + line +
                                                    R"("}, {"type": "text", "text": )" +
                                                    json_string(kPolicy) + "}], "))
        .keys();
  };
  const Keys keys = with("x-anthropic-billing-header: cc=1; n=5");
  EXPECT_EQ(keys, with("x-anthropic-billing-header: cc=2; n=6"));
  EXPECT_EQ(keys, Read(kMessages, messages(message("user", "Hi"), system_text(kPolicy))).keys());
  EXPECT_EQ(with(R"(x-anthropic-billing-header: a\nBe brief.)"), with("Be brief."));
}

TEST(Messages, KeepCallsOfToolsAndTheirResults) {
  const std::string ask = message("user", kPolicy);
  const auto use = [](const std::string& id, const std::string& input) {
    return R"({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm",
      "signature": "s"},
      {"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": ")" +
           id + R"(", "name": "stock", "input": )" + input + "}]}";
  };
  const auto result = [](const std::string& content) {
    return R"({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
      "content": )" +
           content + R"(}, {"type": "text", "text": "So?"}]})";
  };
  const Read used(kMessages, messages(ask + "," + use("t1", R"({"sku": 4471, "qty": 1})")));
  EXPECT_EQ(used.text(),
            Read(kMessages, messages(ask + "," + use("t2", R"({"qty": 1, "sku": 4471})"))).text());
  EXPECT_NE(used.text(),
            Read(kMessages, messages(ask + "," + use("t1", R"({"sku": 4472})"))).text());
  const Read done(kMessages, messages(ask + "," + use("t1", R"({"sku": 4471, "qty": 1})") + "," +
                                      result(R"("12 left")")));
  EXPECT_TRUE(done.text().starts_with(used.text()));
  EXPECT_EQ(done.text(),
            Read(kMessages, messages(ask + "," + use("t1", R"({"sku": 4471, "qty": 1})") + "," +
                                     result(R"([{"type": "text", "text": "12 left"}])")))
                .text());
  EXPECT_NE(done.text().find("\xFFO12 left\xFFPSo?"), std::string::npos);
  EXPECT_EQ(
      Read(kMessages, messages(R"({"role": "user", "content": [{"type": "tool_result"}]})")).status,
      0);
}

TEST(Messages, OfImagesInBytesAreToldApart) {
  const auto image = [](const std::string& data) {
    return Read(kMessages,
                messages(
                    R"({"role": "user", "content": [{"type": "image", "source": {"type": "base64",
                    "media_type": "image/png", "data": ")" +
                    data + R"("}}]})"))
        .keys();
  };
  EXPECT_TRUE(share_nothing(image("iVBORw0KGgo1"), image("iVBORw0KGgo2")));
  EXPECT_EQ(image("iVBORw0KGgo1"), image("iVBORw0KGgo1"));
}

TEST(Messages, OfOtherFormsAreRefused) {
  EXPECT_EQ(Read(kMessages, R"({"model": "m"})").status, -EINVAL);
  EXPECT_EQ(Read(kMessages, messages("7")).status, -EINVAL);
  EXPECT_EQ(Read(kMessages, messages(R"({"role": "user"})", R"("system": 7, )")).status, 0);
}

// ---- Responses ----------------------------------------------------------------------------------

std::string responses(const std::string& input, const std::string& fields = "") {
  return R"({"model": "m", )" + fields + R"("input": )" + input + "}";
}

TEST(Responses, AreInstructionsThenInput) {
  const Read read(
      kResponses,
      responses(json_string("Hi"), R"("instructions": "Be brief.", "max_output_tokens": 9, )"));
  ASSERT_EQ(read.status, 0);
  EXPECT_EQ(read.info.api, PICKD_BODY_RESPONSES);
  EXPECT_EQ(read.info.max_tokens, 9U);
  EXPECT_EQ(read.text(),
            "\xFFMsystem\xFE"
            "Be brief.\xFFMuser\xFEHi");
}

TEST(Responses, HaveOneFormForATextAndForItems) {
  const Read text(kResponses, responses(json_string(kPolicy)));
  const Read item(kResponses, responses("[" + message("user", kPolicy) + "]"));
  const Read typed(
      kResponses,
      responses(R"([{"type": "message", "role": "user", "content": [{"type": "input_text",
      "text": )" +
                json_string(kPolicy) + "}]}]"));
  EXPECT_EQ(text.keys(), item.keys());
  EXPECT_EQ(text.keys(), typed.keys());
}

TEST(Responses, OfTheNextTurnContinueTheOneBefore) {
  const std::string first = message("user", kPolicy);
  const std::string turn =
      R"({"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
      {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
       "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}]},
      {"type": "function_call", "id": "f1", "call_id": "c1", "name": "stock", "arguments": "{}"})";
  const std::string output =
      R"({"type": "function_call_output", "call_id": "c1", "output": "12 left"})";
  const Read one(kResponses, responses("[" + first + "]"));
  const Read two(kResponses, responses("[" + first + "," + turn + "," + output + "]"));
  EXPECT_TRUE(two.text().starts_with(one.text()));
  EXPECT_EQ(two.text().substr(one.text().size()),
            "\xFFMassistant\xFE\xFFRhm\xFFPLet me see.\xFF"
            "Cstock\xFE{}\xFFMtool\xFE"
            "12 left");
}

TEST(Responses, BehindAStoredConversationShareNothingWithOthers) {
  const Read plain(kResponses, responses(json_string(kPolicy)));
  for (const std::string field :
       {R"("previous_response_id": "resp_1", )", R"("conversation": "conv_1", )",
        R"("prompt": {"id": "p1"}, )", R"("reasoning": {"effort": "high"}, )"}) {
    EXPECT_TRUE(share_nothing(plain.keys(),
                              Read(kResponses, responses(json_string(kPolicy), field)).keys()))
        << field;
  }
  EXPECT_EQ(plain.keys(), Read(kResponses, responses(json_string(kPolicy),
                                                     R"("reasoning": {"summary": "auto"}, )"))
                              .keys());
  EXPECT_EQ(string_of(Read(kResponses, responses("\"x\"", R"("conversation": {"id": "conv_1"}, )"))
                          .info.session_id),
            "conv_1");
}

TEST(Responses, OfImagesAndItemsOfOtherKindsAreToldApart) {
  const auto item = [](const std::string& json) {
    return Read(kResponses, responses("[" + json + "]")).keys();
  };
  const auto image = [&](const std::string& url) {
    return item(R"({"role": "user", "content": [{"type": "input_image", "image_url": ")" + url +
                R"("}]})");
  };
  EXPECT_TRUE(share_nothing(image("https://x.example/1"), image("https://x.example/2")));
  EXPECT_TRUE(share_nothing(item(R"({"type": "item_reference", "id": "x", "of": "1"})"),
                            item(R"({"type": "item_reference", "id": "x", "of": "2"})")));
}

TEST(Responses, OfOtherFormsAreRefused) {
  EXPECT_EQ(Read(kResponses, R"({"model": "m"})").status, -EINVAL);
  EXPECT_EQ(Read(kResponses, responses("7")).status, -EINVAL);
  EXPECT_EQ(Read(kResponses, R"({"model": "m", "previous_response_id": "r"})").status, 0);
  EXPECT_EQ(
      Read(kResponses, responses(R"([7, null, [], {"type": 5}, {"type": "message"}])")).status, 0);
}

}  // namespace
}  // namespace pickd::body

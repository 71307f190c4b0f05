// What holds for a body of any API: paths, headers, salts, sizes, pieces, and input that cannot be
// read.
#include <map>
#include <random>

#include "tests/libbody/support.hpp"

namespace pickd::body {
namespace {

const std::string kPolicy = long_text(1500);

std::map<std::string, std::uint64_t> counts(const pickd_body_counters* counters) {
  std::map<std::string, std::uint64_t> all;
  const char* help = nullptr;
  for (std::size_t i = 0; const char* name = pickd_body_counter_name(i, &help); ++i) {
    EXPECT_NE(std::string(help), "");
    all[name] = pickd_body_counter_value(counters, i);
  }
  return all;
}

// ---- Paths and headers --------------------------------------------------------------------------

// Field case 88: a query or a path behind the API's does not hide it.
TEST(Path, NamesTheApiWhateverStandsAroundIt) {
  const std::pair<const char*, pickd_body_api> cases[] = {
      {"/v1/chat/completions", PICKD_BODY_CHAT},
      {"/v1/chat/completions/render", PICKD_BODY_CHAT},
      {"/v1/chat/completions?api-version=2026-01-01", PICKD_BODY_CHAT},
      {"/openai/deployments/gpt/chat/completions", PICKD_BODY_CHAT},
      {"//v1//chat//completions/", PICKD_BODY_CHAT},
      {"http://gateway.example/v1/chat/completions#x", PICKD_BODY_CHAT},
      {"/v1/completions", PICKD_BODY_COMPLETIONS},
      {"/v1/completions/", PICKD_BODY_COMPLETIONS},
      {"completions", PICKD_BODY_COMPLETIONS},
      {"/v1/messages?beta=true", PICKD_BODY_MESSAGES},
      {"/v1/messages/count_tokens", PICKD_BODY_MESSAGES},
      {"/anthropic/v1/messages", PICKD_BODY_MESSAGES},
      {"/v1/responses", PICKD_BODY_RESPONSES},
      {"/v1/responses/input_tokens", PICKD_BODY_RESPONSES},
      {"/v1/embeddings", PICKD_BODY_EMBEDDINGS},
      {"/generate", PICKD_BODY_SGLANG},
      {"/inference/v1/generate", PICKD_BODY_VLLM},
      {"/v1/models", PICKD_BODY_UNKNOWN},
      {"/v1/xcompletions", PICKD_BODY_UNKNOWN},
      {"/?p=/v1/completions", PICKD_BODY_UNKNOWN},
      {"/", PICKD_BODY_UNKNOWN},
      {"", PICKD_BODY_UNKNOWN},
  };
  for (const auto& [path, api] : cases) EXPECT_EQ(Read(path, "{}").info.api, api) << path;
}

TEST(Path, ThatIsNotKnownStillTellsTheModel) {
  const Read read("/v1/magic", R"({"model": "m", "stream": true, "prompt": "x"})");
  EXPECT_EQ(read.status, -ENOENT);
  EXPECT_EQ(read.model(), "m");
  EXPECT_EQ(read.info.flags, PICKD_BODY_STREAM);
  EXPECT_TRUE(read.keys().empty());
  EXPECT_EQ(read.request().prompt_tokens, (read.info.bytes.size + 3) / 4);
}

TEST(HeadersOfABody, TellSessionRequestAndFairness) {
  const Read read(kCompletions, R"({"prompt": "x", "session_id": "of the body"})",
                  {{"X-Session-ID", " s-1 "},
                   {"x-session-id", "s-2"},
                   {"X-REQUEST-ID", "r-1"},
                   {"x-llm-d-inference-fairness-id", "team"}});
  EXPECT_EQ(string_of(read.info.session_id), "s-1") << "the first counts";
  EXPECT_EQ(string_of(read.info.request_id), "r-1");
  EXPECT_EQ(string_of(read.info.fairness_id), "team");
  EXPECT_EQ(string_of(read.request().session_id), "s-1");
  EXPECT_EQ(string_of(read.request().request_id), "r-1");
  EXPECT_EQ(string_of(read.request().fairness_id), "team");
}

TEST(HeadersOfABody, MayNameTheSessionOtherwise) {
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.session_header = "x-conversation";
  const HeaderList headers = {{"x-session-id", "a"}, {"X-Conversation", "b"}};
  Read read(kCompletions, R"({"prompt": "x"})", headers, {}, SIZE_MAX, &options);
  EXPECT_EQ(string_of(read.info.session_id), "b");
  read.again(kCompletions, R"({"prompt": "x", "session_id": "c"})");
  EXPECT_EQ(string_of(read.info.session_id), "c") << "the body, where no header does";
}

TEST(HeadersOfABody, ThatAreTooLongStillKeepASessionTogether) {
  const auto session = [](const std::string& id) {
    return string_of(
        Read(kCompletions, R"({"prompt": "x"})", {{"x-session-id", id}}).info.session_id);
  };
  const std::string longest(255, 's');
  EXPECT_EQ(session(longest), longest);
  EXPECT_EQ(session(longest + "1").size(), 32U);
  EXPECT_EQ(session(longest + "1"), session(longest + "1"));
  EXPECT_NE(session(longest + "1"), session(longest + "2"));
}

TEST(HeadersOfABody, SayThatItIsCompressed) {
  for (const char* encoding : {"gzip", "br", "GZIP, identity"}) {
    const Read read(kCompletions, R"({"prompt": "x"})", {{"Content-Encoding", encoding}});
    EXPECT_EQ(read.status, -EOPNOTSUPP) << encoding;
    EXPECT_TRUE(read.keys().empty());
  }
  EXPECT_EQ(Read(kCompletions, R"({"prompt": "x"})", {{"Content-Encoding", "identity"}}).status, 0);
}

// ---- Salts --------------------------------------------------------------------------------------

std::string salted(const std::string& fields, const std::string& model = "m") {
  return R"({"model": ")" + model + R"(", )" + fields + R"("prompt": )" + json_string(kPolicy) +
         "}";
}
Keys salted_keys(const std::string& fields, std::string_view tenant = {},
                 const std::string& model = "m") {
  return Read(kCompletions, salted(fields, model), {}, tenant).keys();
}

// Field case 103: a shared prefix is no way to learn of another tenant's prompts.
TEST(Salt, SharesNothingWithAnother) {
  const Keys plain = salted_keys("");
  const Keys a = salted_keys(R"("cache_salt": "tenant-a", )");
  const Keys b = salted_keys(R"("cache_salt": "tenant-b", )");
  EXPECT_TRUE(share_nothing(a, b));
  EXPECT_TRUE(share_nothing(a, plain));
  EXPECT_EQ(a, salted_keys(R"("cache_salt": "tenant-a", )"));
  EXPECT_EQ(plain, salted_keys(R"("cache_salt": null, )"));
  EXPECT_EQ(string_of(Read(kCompletions, salted(R"("cache_salt": "t", )")).info.salt), "t")
      << "as engines name it";
}

TEST(Salt, OfATenantIsTheGateways) {
  EXPECT_TRUE(share_nothing(salted_keys("", "a"), salted_keys("", "b")));
  EXPECT_TRUE(share_nothing(salted_keys("", "a"), salted_keys("")));
  EXPECT_TRUE(share_nothing(salted_keys("", "a"), salted_keys(R"("cache_salt": "a", )")));
  EXPECT_EQ(salted_keys("", "a"), salted_keys("", "a"));
}

// Field case 104: tenant and salt are framed by their lengths.
TEST(Salt, IsFramedSoThatNoTwoSplitsAreAlike) {
  std::vector<Keys> all = {
      salted_keys(R"("cache_salt": "2345", )", "org_1"),
      salted_keys("", "org_12345"),
      salted_keys(R"("cache_salt": "org_12345", )"),
      salted_keys(R"("cache_salt": "5", )", "org_1234"),
      salted_keys(R"("extra_key": "2345", )", "org_1"),
      salted_keys(R"("cache_salt": "23", "extra_key": "45", )", "org_1"),
      salted_keys(R"("extra_key": "org_12345", )"),
      salted_keys(R"("cache_salt": "c", )", "", "ab"),
      salted_keys(R"("cache_salt": "bc", )", "", "a"),
      salted_keys("", "", "abc"),
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(share_nothing(all[i], all[j])) << i << " " << j;
  }
}

TEST(Adapter, SharesNothingWithItsBaseModel) {
  EXPECT_TRUE(share_nothing(salted_keys(""), salted_keys("", "", "sql-lora")));
  EXPECT_TRUE(share_nothing(salted_keys(""), salted_keys(R"("lora_path": "sql", )")));
}

// ---- Pieces and sizes ---------------------------------------------------------------------------

// Field case 101: bodies of any size, in pieces of any size.
TEST(Pieces, OfAnySizeGiveTheSamePrompt) {
  std::string text;
  while (text.size() < 20000)
    text += R"(Family \ud83d\udc68 )"
            "\xF0\x9F\x91\xA8\xE2\x80\x8D d\xC3\xA9j\xC3\xA0 vu ";
  const std::string body =
      R"({"model": "m", "messages": [{"role": "user", "content": ")" + text + R"("}]})";
  const Read whole(kChat, body);
  ASSERT_EQ(whole.status, 0);
  ASSERT_GT(whole.keys().size(), 50U);
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7},
                                 std::size_t{64}, body.size() / 17, body.size() - 1}) {
    EXPECT_EQ(whole.keys(), Read(kChat, body, {}, {}, step).keys()) << step;
  }
}

TEST(Pieces, OfABodyOfAMebibyteGiveTheSamePrompt) {
  const std::string body =
      R"({"model": "m", "prompt": )" + json_string(long_text(std::size_t{1} << 20)) + "}";
  const Read whole(kCompletions, body);
  EXPECT_EQ(whole.keys().size(), 4096U);
  EXPECT_EQ(whole.keys(), Read(kCompletions, body, {}, {}, body.size() / 17).keys());
  EXPECT_EQ(whole.keys(), Read(kCompletions, body, {}, {}, body.size() / 1000).keys());
  EXPECT_EQ(string_of(whole.info.bytes), body) << "to pass on";
}

TEST(Pieces, OfNoBytesChangeNothing) {
  BodyHandle body = new_body();
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  head.path = slice_of(kCompletions);
  ASSERT_EQ(pickd_body_begin(body.get(), &head), 0);
  EXPECT_EQ(pickd_body_add(body.get(), nullptr, 0), 0);
  EXPECT_EQ(pickd_body_add(body.get(), R"({"prompt": "x"})", 15), 0);
  EXPECT_EQ(pickd_body_add(body.get(), nullptr, 0), 0);
  EXPECT_EQ(pickd_body_end(body.get()), 0);
}

TEST(Size, OverItsLimitIsNotRead) {
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.body_bytes_max = 1000;
  const std::string fits = R"({"prompt": ")" + std::string(1000 - 14, 'x') + R"("})";
  ASSERT_EQ(fits.size(), 1000U);
  Read read(kCompletions, fits, {}, {}, 100, &options);
  EXPECT_EQ(read.status, 0);
  read.again(kCompletions, fits + " ", {}, {}, 100);
  EXPECT_EQ(read.status, -E2BIG);
  EXPECT_TRUE(read.keys().empty());
  EXPECT_EQ(read.info.bytes.size, 0U);
  EXPECT_EQ(read.request().prompt_tokens, 251U) << "there is work to do all the same";
  read.again(kCompletions, fits, {}, {}, 1000);
  EXPECT_EQ(read.status, 0) << "the next one is read";
}

TEST(Size, OfABodyAfterALongOneIsAsBefore) {
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.keep_bytes_max = 4096;
  Read read(kCompletions, R"({"prompt": "short"})", {}, {}, SIZE_MAX, &options);
  for (int i = 0; i < 3; ++i) {
    read.again(kCompletions, R"({"prompt": ")" + long_text(300000) + R"("})");
    EXPECT_EQ(read.status, 0);
    EXPECT_EQ(read.text(), long_text(300000));
    read.again(kCompletions, R"({"prompt": "short"})");
    EXPECT_EQ(read.text(), "short");
  }
}

TEST(Size, OfATextWithoutASpaceIsATextLikeAnyOther) {
  const Read read(kCompletions, R"({"prompt": ")" + std::string(200000, 'x') + R"("})");
  EXPECT_EQ(read.keys().size(), (200000 + kBlockBytes - 1) / kBlockBytes);
  EXPECT_EQ(read.request().prompt_tokens, 50000U);
}

// ---- What cannot be read ------------------------------------------------------------------------

// Field case 89: no crash, and one answer for each.
TEST(Malformed, BodiesHaveNoPrefix) {
  const std::string deep(100000, '[');
  const std::string cases[] = {
      "model=m&prompt=hello",
      R"({"model":"m","messages":[{"role":"user","content":"cut of)",
      R"({"model":"m","prompt":"x"}})",
      R"({"model":"m","prompt":"x"} {"model":"m"})",
      R"({"model":"m","prompt":"x",})",
      R"({'model':'m'})",
      R"({"prompt": "a)"
      "\n"
      R"("})",
      R"({"prompt": "\x41"})",
      "{\"prompt\": \"\xFF\xFE\"}",
      "{\"prompt\": \"\xC0\xAF\"}",
      "{\"prompt\": \"\xED\xA0\x80\"}",
      "{\"prompt\": \"\xF4\x90\x80\x80\"}",
      std::string("{\"prompt\": \"a\0b\"}", 17),
      std::string("{\"prompt\": \"ab\"}\0", 17),
      R"("prompt")",
      "[]",
      "7",
      "null",
      " ",
      "\xEF\xBB\xBF",
      "{",
      deep,
      R"({"prompt": )" + deep,
  };
  for (const std::string& json : cases) {
    for (const char* path : {kCompletions, kChat, kMessages, kResponses, kSglang, kVllm, "/x"}) {
      const Read read(path, json);
      EXPECT_EQ(read.status, -EBADMSG) << json.substr(0, 60);
      EXPECT_TRUE(read.keys().empty());
      EXPECT_EQ(read.model(), "");
      EXPECT_EQ(read.request().prompt_tokens, 0U);
    }
  }
  EXPECT_EQ(Read(kCompletions, "").status, -ENODATA);
}

TEST(Malformed, IsNotWhatIsOnlyUnusual) {
  EXPECT_EQ(Read(kCompletions, "\xEF\xBB\xBF {\"prompt\": \"x\"}\r\n").text(), "x");
  EXPECT_EQ(Read(kCompletions, R"({"prompt": "y", "prompt": "x"})").text(), "x");
  EXPECT_EQ(Read(kCompletions, R"({"prompt": "a\u0000b"})").text(), std::string("a\0b", 3));
  std::string nested =
      R"({"x": )" + std::string(100, '[') + std::string(100, ']') + R"(, "prompt": "x"})";
  EXPECT_EQ(Read(kCompletions, nested).text(), "x");
}

TEST(Malformed, FieldsOfOtherTypesAreAsGoodAsAbsent) {
  for (const std::string value :
       {"7", "-1", "1.5", "true", "null", "[]", "{}", R"("x")", R"([{"a": []}])"}) {
    for (const char* path :
         {kCompletions, kChat, kMessages, kResponses, kEmbeddings, kSglang, kVllm}) {
      std::string json = "{";
      for (const char* name : {"model",
                               "stream",
                               "stream_options",
                               "cache_salt",
                               "extra_key",
                               "lora_path",
                               "n",
                               "best_of",
                               "max_tokens",
                               "sampling_params",
                               "session_id",
                               "session_params",
                               "conversation",
                               "rid",
                               "prompt_embeds",
                               "tools",
                               "functions",
                               "system",
                               "instructions",
                               "features",
                               "image_data",
                               "chat_template",
                               "documents",
                               "reasoning",
                               "thinking"}) {
        json += json_string(name) + ": " + value + ", ";
      }
      const Read read(path, json + R"("prompt": "p", "messages": [{"role": )" + value +
                                R"(, "content": )" + value + R"(, "tool_calls": )" + value +
                                R"(, "name": )" + value + R"(, "function_call": )" + value +
                                R"(}], "input": "i", "text": "t", "token_ids": [1]})");
      EXPECT_EQ(read.status, 0) << path << " " << value;
    }
  }
}

TEST(Malformed, BytesAtRandomNeverHarm) {
  std::mt19937 random(7);
  const std::string good = R"({"model":"m","messages":[{"role":"user","content":[{"type":"text",
      "text":"hi"},{"type":"image_url","image_url":{"url":"x"}}],"tool_calls":[{"function":{}}]}],
      "prompt":["a",[1,2]],"input":[{"type":"reasoning","summary":[{}]}],"tools":[{"a":[1,{}]}]})";
  Read read(kChat, good);
  for (int round = 0; round < 3000; ++round) {
    std::string json = good;
    for (int i = 0; i < 4; ++i) json[random() % json.size()] = "{}[]\",:0ax\\"[random() % 11];
    for (const char* path : {kChat, kMessages, kResponses, kCompletions}) read.again(path, json);
    if (read.status == 0) read.keys();
  }
}

TEST(CountersOfBodies, TellWhyThereIsNoPrefix) {
  pickd_body_counters* counters = pickd_body_counters_new();
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.counters = counters;
  options.body_bytes_max = 1000;
  Read read(kCompletions, R"({"prompt": "x"})", {}, {}, SIZE_MAX, &options);
  read.again(kCompletions, "");
  read.again(kCompletions, "{");
  read.again(kCompletions, "[");
  read.again(kCompletions, std::string(1001, ' '));
  read.again(kCompletions, R"({"prompt": "x"})", {{"content-encoding", "gzip"}});
  read.again("/v1/magic", R"({"prompt": "x"})");
  read.again(kCompletions, R"({"prompt": 7})");
  read.again(kCompletions, R"({"prompt": " "})");
  auto all = counts(counters);
  EXPECT_EQ(all["bodies_total"], 9U);
  EXPECT_EQ(all["bodies_empty_total"], 1U);
  EXPECT_EQ(all["bodies_malformed_total"], 2U);
  EXPECT_EQ(all["bodies_too_long_total"], 1U);
  EXPECT_EQ(all["bodies_encoded_total"], 1U);
  EXPECT_EQ(all["bodies_unknown_path_total"], 1U);
  EXPECT_EQ(all["bodies_unknown_form_total"], 1U);
  EXPECT_EQ(all["bodies_blank_total"], 1U);
  EXPECT_EQ(all["bodies_no_memory_total"], 0U);
  EXPECT_EQ(pickd_body_counter_value(counters, 9999), 0U);
  EXPECT_EQ(pickd_body_counter_name(9999, nullptr), nullptr);
  pickd_body_counters_free(counters);
}

// ---- Handles ------------------------------------------------------------------------------------

TEST(BodyHandle, RefusesWhatCannotBe) {
  pickd_body* made = nullptr;
  EXPECT_EQ(pickd_body_new(nullptr, nullptr), -EINVAL);
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.flags = 1;
  EXPECT_EQ(pickd_body_new(&options, &made), -EINVAL);
  options = PICKD_BODY_OPTIONS_INIT;
  options.media_tokens = 65537;
  EXPECT_EQ(pickd_body_new(&options, &made), -EINVAL);
  options = PICKD_BODY_OPTIONS_INIT;
  options.struct_size = 8;
  EXPECT_EQ(pickd_body_new(&options, &made), -EINVAL);
  struct Newer {
    pickd_body_options known = PICKD_BODY_OPTIONS_INIT;
    std::uint64_t added = 0;
  } newer;
  newer.known.struct_size = sizeof newer;
  EXPECT_EQ(pickd_body_new(&newer.known, &made), 0) << "a field of a newer header that is not used";
  pickd_body_free(made);
  newer.added = 1;
  EXPECT_EQ(pickd_body_new(&newer.known, &made), -E2BIG);
  pickd_body_free(nullptr);

  const BodyHandle body = new_body();
  pickd_request request = PICKD_REQUEST_INIT;
  pickd_body_info info = PICKD_BODY_INFO_INIT;
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  EXPECT_EQ(pickd_body_add(body.get(), "{}", 2), -EINVAL) << "not begun";
  EXPECT_EQ(pickd_body_end(body.get()), -EINVAL);
  EXPECT_EQ(pickd_body_request(body.get(), 0, &request), -EINVAL);
  EXPECT_EQ(pickd_body_read_info(body.get(), &info), -EINVAL);
  head.header_count = 1;
  EXPECT_EQ(pickd_body_begin(body.get(), &head), -EINVAL);
  head = PICKD_BODY_HEAD_INIT;
  head.path.size = 5;
  EXPECT_EQ(pickd_body_begin(body.get(), &head), -EINVAL);
  head = PICKD_BODY_HEAD_INIT;
  EXPECT_EQ(pickd_body_begin(body.get(), &head), 0);
  EXPECT_EQ(pickd_body_add(body.get(), nullptr, 1), -EINVAL);
  EXPECT_EQ(pickd_body_end(body.get()), -ENODATA);
  EXPECT_EQ(pickd_body_add(body.get(), "{}", 2), -EINVAL) << "ended";
  request.struct_size = 8;
  EXPECT_EQ(pickd_body_request(body.get(), PICKD_BODY_LONGEST, &request), -EINVAL);
  EXPECT_STRNE(pickd_body_strerror(-EBADMSG), pickd_body_strerror(-EINVAL));
}

TEST(BodyHandle, TellsCallersOfOlderHeadersWhatTheyHaveRoomFor) {
  Read read(kCompletions, R"({"model": "m", "prompt": "x", "n": 2})");
  pickd_body_info info;
  std::memset(&info, 0x55, sizeof info);
  info.struct_size = offsetof(pickd_body_info, max_tokens);
  EXPECT_EQ(pickd_body_read_info(read.get(), &info), 0);
  EXPECT_EQ(info.struct_size, offsetof(pickd_body_info, max_tokens));
  EXPECT_EQ(info.n, 2U);
  EXPECT_EQ(info.max_tokens, 0x55555555U) << "not written";
}

TEST(BodyHandle, LeavesFieldsOfTheRequestThatTheBodyDoesNotTell) {
  Read read(kCompletions, R"({"model": "m", "prompt": "x"})");
  pickd_request request = PICKD_REQUEST_INIT;
  request.priority = -3;
  request.slo_ttft_ms = 200;
  request.flags = PICKD_REQUEST_SUBSET | PICKD_REQUEST_STREAM;
  ASSERT_EQ(pickd_body_request(read.get(), PICKD_BODY_LONGEST, &request), 0);
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.slo_ttft_ms, 200);
  EXPECT_EQ(request.flags, PICKD_REQUEST_SUBSET);
}

TEST(BodyHandle, ForgetsTheBodyBefore) {
  Read read(kCompletions,
            R"({"model": "m", "prompt": "x", "n": 2, "stream": true, "cache_salt": "s",
      "lora_path": "l", "session_id": "i", "rid": "r", "max_tokens": 4, "stream_options": {}})",
            {{"x-llm-d-inference-fairness-id", "f"}}, "tenant");
  read.again(kCompletions, R"({"prompt": "y"})");
  EXPECT_EQ(read.text(), "y");
  EXPECT_EQ(read.info.flags, 0U);
  EXPECT_EQ(read.info.n, 1U);
  EXPECT_EQ(read.info.max_tokens, PICKD_UNKNOWN);
  for (const pickd_slice& slice :
       {read.info.model, read.info.adapter, read.info.salt, read.info.session_id,
        read.info.request_id, read.info.fairness_id}) {
    EXPECT_EQ(slice.size, 0U);
  }
}

}  // namespace
}  // namespace pickd::body

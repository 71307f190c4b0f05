// Completions, embeddings and the engines' own forms: strings and token ids, one or several.
#include <numeric>

#include "tests/libbody/support.hpp"

namespace pickd::body {
namespace {

const std::string kSystem = long_text(1100);

std::string ids(std::uint32_t count, std::uint32_t first = 5) {
  std::string list = "[";
  for (std::uint32_t i = 0; i < count; ++i)
    list += (i == 0 ? "" : ", ") + std::to_string(first + i * 7919 % 128000);
  return list + "]";
}
std::string body(const std::string& field, const std::string& value, const std::string& more = "") {
  return R"({"model": "m", ")" + field + R"(": )" + value + more + "}";
}

TEST(Completions, AreThePromptAsItIs) {
  const Read read(kCompletions, body("prompt", R"("Say \"hi\"")", R"(, "max_tokens": 7)"));
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.text(), "Say \"hi\"");
  EXPECT_EQ(read.info.prompt_count, 1U);
  EXPECT_EQ(read.info.max_tokens, 7U);
  EXPECT_EQ(read.request().expected_output_tokens, 7U);
}

// Field case 85, of texts.
TEST(Completions, OfSeveralPromptsAreHashedEachByItself) {
  const std::string list = "[" + json_string(kSystem + "one") + "," +
                           json_string(kSystem + "two and more") + "," + json_string("three") + "]";
  const Read read(kCompletions, body("prompt", list));
  ASSERT_EQ(read.info.prompt_count, 3U);
  EXPECT_EQ(read.text(0), kSystem + "one");
  EXPECT_EQ(read.text(1), kSystem + "two and more");
  EXPECT_EQ(read.text(2), "three");
  EXPECT_EQ(shared(read.keys(0), read.keys(1)), kSystem.size() / kBlockBytes);
  EXPECT_EQ(read.keys(0), Read(kCompletions, body("prompt", json_string(kSystem + "one"))).keys())
      << "a prompt in a list is like one alone";
  EXPECT_EQ(read.text(), read.text(1)) << "the longest";
  std::uint32_t tokens = 0;
  for (std::size_t i = 0; i < 3; ++i) tokens += read.request(i).prompt_tokens;
  EXPECT_EQ(read.request().prompt_tokens, tokens) << "the engine computes all of them";
  pickd_request request = PICKD_REQUEST_INIT;
  EXPECT_EQ(pickd_body_request(read.get(), 3, &request), -EINVAL);
}

TEST(Completions, OfTokenIdsKeepThem) {
  const Read read(kCompletions, body("prompt", "[128000, 0, 4294967295]"));
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.tokens(), (std::vector<std::uint32_t>{128000, 0, 4294967295}));
  EXPECT_EQ(read.request().prompt_tokens, 3U);
  EXPECT_EQ(read.request().text_count, 0U);
}

// Field case 85, of token ids.
TEST(Completions, OfListsOfTokenIdsAreHashedEachByItself) {
  const Read alone(kCompletions, body("prompt", ids(201)));
  const Read lists(kCompletions, body("prompt", "[" + ids(201) + "," + ids(70) + "]"));
  ASSERT_EQ(lists.info.prompt_count, 2U);
  EXPECT_EQ(lists.keys(0), alone.keys());
  EXPECT_EQ(shared(lists.keys(0), lists.keys(1)), 1U) << "the first 64 ids";
  EXPECT_EQ(lists.tokens(), lists.tokens(0));
  EXPECT_EQ(lists.request().prompt_tokens, 271U);
}

TEST(Completions, OfOtherFormsAreRefused) {
  for (const std::string prompt :
       {"7", "true", "[1, -2]", "[1, 2.5]", "[1, 4294967296]", "[1, \"a\"]", "[\"a\", 1]",
        "[[1], [\"a\"]]", "[[1, [2]]]", "[null]", "[true]"}) {
    const Read read(kCompletions, body("prompt", prompt));
    EXPECT_EQ(read.status, -EINVAL) << prompt;
    EXPECT_TRUE(read.keys().empty()) << prompt;
    EXPECT_EQ(read.info.prompt_count, 0U) << prompt;
    EXPECT_EQ(read.model(), "m") << prompt;
  }
  EXPECT_EQ(Read(kCompletions, R"({"model": "m"})").status, -EINVAL);
}

TEST(Completions, OfNothingHaveNoPrompt) {
  for (const std::string prompt : {"\"\"", "[]", "[[]]", "\"  \""}) {
    const Read read(kCompletions, body("prompt", prompt));
    EXPECT_EQ(read.status, 0) << prompt;
    EXPECT_TRUE(read.keys().empty()) << prompt;
  }
}

TEST(Completions, OfEmbeddingsInPlaceOfATextAreToldApart) {
  const Read a(kCompletions, body("prompt_embeds", R"("AAAA")", R"(, "prompt": null)"));
  const Read b(kCompletions, body("prompt_embeds", R"("AAAB")"));
  EXPECT_EQ(a.status, 0);
  EXPECT_TRUE(share_nothing(a.keys(), b.keys()));
}

TEST(Completions, BeyondTheMostPromptsCountTheirTokens) {
  std::string list = "\"abcd\"";
  for (int i = 1; i < 5000; ++i) list += ",\"abcd\"";
  const Read read(kCompletions, body("prompt", "[" + list + "]"));
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.info.prompt_count, 4096U);
  EXPECT_EQ(read.request().prompt_tokens, 5000U);
}

TEST(Embeddings, KeepNoPrefix) {
  const Read read(kEmbeddings,
                  body("input", R"(["first text", "second text", "d\u00e9j\u00e0 vu"])"));
  EXPECT_EQ(read.status, 0);
  ASSERT_EQ(read.info.prompt_count, 3U);
  EXPECT_EQ(read.text(2), "d\xC3\xA9j\xC3\xA0 vu") << "each by itself";
  EXPECT_TRUE(read.keys().empty()) << "picked by load";
  EXPECT_EQ(read.request().prompt_tokens, 3U + 3 + 3);
  EXPECT_EQ(read.request().expected_output_tokens, 1U);
  EXPECT_EQ(Read(kEmbeddings, body("input", "[1, 2, 3]")).request().prompt_tokens, 3U);
}

TEST(Sglang, IsATextUnderAnAdapter) {
  const Read read(kSglang, R"({"text": )" + json_string(kSystem) + R"(, "lora_path": "bikes",
      "sampling_params": {"max_new_tokens": 16, "n": 2}, "stream": true, "rid": "r-1",
      "session_params": {"id": "s-1"}})");
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.text(), kSystem);
  EXPECT_EQ(string_of(read.info.adapter), "bikes");
  EXPECT_EQ(read.info.max_tokens, 16U);
  EXPECT_EQ(read.info.n, 2U);
  EXPECT_EQ(string_of(read.info.request_id), "r-1");
  EXPECT_EQ(string_of(read.info.session_id), "s-1");
  EXPECT_EQ(read.info.flags, PICKD_BODY_STREAM);
  EXPECT_TRUE(share_nothing(read.keys(), Read(kSglang, body("text", json_string(kSystem))).keys()));
}

TEST(Sglang, TakesListsAndTokenIds) {
  const Read texts(kSglang, body("text", R"(["a", "bc"])", R"(, "lora_path": [null, "x"])"));
  EXPECT_EQ(texts.info.prompt_count, 2U);
  EXPECT_EQ(string_of(texts.info.adapter), "x");
  const Read tokens(kSglang, body("input_ids", "[[1, 2], [3]]"));
  EXPECT_EQ(tokens.tokens(0), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(Read(kSglang, body("input_ids", "[4]")).tokens(), (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(Read(kSglang, R"({"model": "m"})").status, -EINVAL);
}

TEST(Sglang, TellsTextsWithOtherImagesApart) {
  const auto with = [](const std::string& more) {
    return Read(kSglang, body("text", json_string(kSystem), more)).keys();
  };
  EXPECT_TRUE(share_nothing(with(R"(, "image_data": "https://x/1")"),
                            with(R"(, "image_data": "https://x/2")")));
  EXPECT_TRUE(share_nothing(with(""), with(R"(, "image_data": ["https://x/2"])")));
  EXPECT_EQ(with(R"(, "image_data": "https://x/1")"), with(R"(, "image_data": "https://x/1")"));
}

TEST(Vllm, IsTokenIds) {
  const Read read(kVllm, R"({"model": "m", "token_ids": [5, 6, 7], "request_id": "r",
      "sampling_params": {"max_tokens": 3}, "cache_salt": "t"})");
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.tokens(), (std::vector<std::uint32_t>{5, 6, 7}));
  EXPECT_EQ(read.info.max_tokens, 3U);
  EXPECT_EQ(string_of(read.info.request_id), "r");
  EXPECT_EQ(string_of(read.info.salt), "t");
  EXPECT_EQ(Read(kVllm, body("token_ids", R"("text")")).status, -EINVAL);
}

std::string features(const std::string& hashes, const std::string& places) {
  return body(
      "token_ids", ids(200),
      R"(, "features": {"mm_hashes": )" + hashes + R"(, "mm_placeholders": )" + places + "}");
}

// Field case 86: all images have the same placeholders.
TEST(Vllm, TellsImagesApartWhosePlaceholdersAreEqual) {
  const std::string places = R"({"image": [{"offset": 70, "length": 9}]})";
  const Read plain(kVllm, body("token_ids", ids(200)));
  const Read a(kVllm, features(R"({"image": ["90aa11c0ffee1234"]})", places));
  const Read b(kVllm, features(R"({"image": ["11bb22d0d0d01234"]})", places));
  EXPECT_EQ(shared(a.keys(), b.keys()), 1U) << "what stands before the image";
  EXPECT_EQ(shared(a.keys(), plain.keys()), 1U);
  EXPECT_EQ(a.keys(), Read(kVllm, features(R"({"image": ["90aa11c0ffee1234"]})", places)).keys());
  EXPECT_EQ(a.request().extra_count, 1U);
  EXPECT_EQ(a.info.media_count, 1U);
}

TEST(Vllm, PutsMediaInOrderOfTheirPlace) {
  const Read read(
      kVllm, features(R"({"image": ["a", "b"], "audio": ["c"]})",
                      R"({"audio": [{"offset": 10}], "image": [{"offset": 150}, {"offset": 3}]})"));
  const pickd_request request = read.request();
  ASSERT_EQ(request.extra_count, 3U);
  EXPECT_EQ(request.extras[0].offset, 3U);
  EXPECT_EQ(request.extras[1].offset, 10U);
  EXPECT_EQ(request.extras[2].offset, 150U);
}

TEST(Vllm, NeverTakesFeaturesThatItCannotPlaceForNone) {
  const Read plain(kVllm, body("token_ids", ids(200)));
  for (const std::string more :
       {R"({"mm_hashes": {"image": ["a"]}})", R"({"other": 1})", R"("text")",
        R"({"mm_hashes": {"image": ["a", "b"]}, "mm_placeholders": {"image": [{"offset": 1}]}})",
        R"({"mm_hashes": {"image": ["a"]}, "mm_placeholders": {"image": [{"offset": 900}]}})",
        R"({"mm_hashes": {"image": [1]}, "mm_placeholders": {"image": [{"offset": 1}]}})"}) {
    const Read read(kVllm, body("token_ids", ids(200), R"(, "features": )" + more));
    EXPECT_EQ(read.status, 0) << more;
    EXPECT_TRUE(share_nothing(plain.keys(), read.keys())) << more;
    EXPECT_EQ(read.keys(),
              Read(kVllm, body("token_ids", ids(200), R"(, "features": )" + more)).keys());
  }
}

}  // namespace
}  // namespace pickd::body

// Prompts into keys: the cutting into segments never matters, everything else does.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libclient/prompt_keys.hpp"

namespace pickd::client {
namespace {

constexpr abi::KeyAlgorithm kText{1, abi::KeyKind::kText, 1, 0, 256};
constexpr abi::KeyAlgorithm kTokens{2, abi::KeyKind::kTokens, 1, 0, 256};
constexpr std::uint32_t kAll = UINT32_MAX;

using Keys = std::vector<std::uint64_t>;

std::array<std::uint8_t, abi::kHashSecretBytes> test_secret() {
  std::array<std::uint8_t, abi::kHashSecretBytes> secret;
  for (std::size_t i = 0; i < secret.size(); ++i)
    secret[i] = static_cast<std::uint8_t>(i * 167 + 13);
  return secret;
}

std::string random_text(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class PromptKeys : public testing::Test {
 protected:
  Keys keys_of(const Prompt& prompt, const abi::KeyAlgorithm& algorithm,
               std::uint32_t keys_max = kAll, std::string_view model = "model",
               std::string_view salt = "") {
    const std::uint64_t root =
        hasher_.root(algorithm, model.data(), model.size(), salt.data(), salt.size());
    Keys keys(std::min<std::uint64_t>(count_keys(prompt, algorithm), keys_max));
    hash_prompt(hasher_, algorithm, root, prompt, static_cast<std::uint32_t>(keys.size()),
                keys.data());
    return keys;
  }

  static Prompt prompt_of(const std::vector<pickd_slice>& segments,
                          const std::vector<pickd_extra>& extras = {}) {
    Prompt prompt;
    prompt.segments = segments.data();
    prompt.segment_count = segments.size();
    for (const pickd_slice& segment : segments) prompt.bytes += segment.size;
    prompt.extras = extras.data();
    prompt.extra_count = extras.size();
    prompt.extra_stride = sizeof(pickd_extra);
    return prompt;
  }

  Keys text_keys(std::string_view text, const std::vector<pickd_extra>& extras = {}) {
    const std::vector<pickd_slice> segments{{text.data(), text.size()}};
    return keys_of(prompt_of(segments, extras), kText);
  }

  Keys token_keys(const std::vector<std::uint32_t>& ids,
                  const std::vector<pickd_extra>& extras = {}) {
    const std::vector<pickd_slice> segments{{ids.data(), ids.size() * sizeof(std::uint32_t)}};
    Prompt prompt = prompt_of(segments, extras);
    prompt.kind = abi::KeyKind::kTokens;
    return keys_of(prompt, kTokens);
  }

  static std::size_t common_prefix(const Keys& a, const Keys& b) {
    std::size_t count = 0;
    while (count < a.size() && count < b.size() && a[count] == b[count]) ++count;
    return count;
  }

  std::array<std::uint8_t, abi::kHashSecretBytes> secret_ = test_secret();
  abi::KeyHasher hasher_{secret_.data()};
};

// ---- Cutting ------------------------------------------------------------------------------------

TEST_F(PromptKeys, AreTheSameHoweverThePromptIsCutIntoSegments) {
  const std::string text = random_text(10'000, 1);
  const Keys whole = text_keys(text);
  ASSERT_EQ(whole.size(), 40U);
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::size_t longest = 1 + random() % (round % 2 == 0 ? 40 : 3000);
    std::vector<pickd_slice> segments;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(random() % (longest + 1), text.size() - at);
      segments.push_back({size == 0 ? nullptr : text.data() + at, size});  // empty ones too
      at += size;
    }
    segments.push_back({nullptr, 0});
    ASSERT_EQ(keys_of(prompt_of(segments), kText), whole) << "round " << round;
  }
}

TEST_F(PromptKeys, AreTheSameByteByByte) {
  const std::string text = random_text(600, 3);
  std::vector<pickd_slice> segments;
  for (const char& c : text) segments.push_back({&c, 1});
  EXPECT_EQ(keys_of(prompt_of(segments), kText), text_keys(text));
}

TEST_F(PromptKeys, AreCutAtTheLimitAndTheRestIsNotRead) {
  const std::string text = random_text(10 * 256, 4);
  const std::vector<pickd_slice> readable{{text.data(), text.size()}};
  // Behind the first 4 blocks stands an address that nobody can read.
  const std::vector<pickd_slice> trap{{text.data(), 4 * 256},
                                      {reinterpret_cast<void*>(8), 6 * 256}};
  const Keys cut = keys_of(prompt_of(trap), kText, 4);
  ASSERT_EQ(cut.size(), 4U);
  EXPECT_EQ(common_prefix(cut, keys_of(prompt_of(readable), kText)), 4U);
}

// ---- Tail ---------------------------------------------------------------------------------------

TEST_F(PromptKeys, CountTheTailAsABlock) {
  const std::string text = random_text(1024, 5);
  const auto count = [&](std::size_t bytes) {
    return text_keys(std::string_view(text).substr(0, bytes)).size();
  };
  EXPECT_EQ(count(0), 0U);
  EXPECT_EQ(count(1), 1U);
  EXPECT_EQ(count(255), 1U);
  EXPECT_EQ(count(256), 1U);
  EXPECT_EQ(count(257), 2U);
  EXPECT_EQ(count(1024), 4U);
}

TEST_F(PromptKeys, LeaveTheTailOutWhenTheAlgorithmSaysSo) {
  abi::KeyAlgorithm full_blocks_only = kText;
  full_blocks_only.tail = 0;
  const std::string text = random_text(1023, 6);
  const std::vector<pickd_slice> segments{{text.data(), text.size()}};
  EXPECT_EQ(keys_of(prompt_of(segments), full_blocks_only).size(), 3U);
}

TEST_F(PromptKeys, DifferWhenOnlyTheTailDiffers) {
  const std::string text = random_text(300, 7);
  std::string other = text;
  other.back() ^= 1;
  EXPECT_EQ(common_prefix(text_keys(text), text_keys(other)), 1U);
  EXPECT_EQ(common_prefix(text_keys(text), text_keys(text + "x")), 1U)
      << "a longer tail is another tail";
}

TEST_F(PromptKeys, TellZeroBytesAndTheirNumberApart) {
  using namespace std::string_view_literals;
  EXPECT_NE(text_keys("a\0b"sv), text_keys("a\0c"sv));
  EXPECT_NE(text_keys("a"sv), text_keys("a\0"sv));
  EXPECT_NE(text_keys(std::string(10, '\0')), text_keys(std::string(11, '\0')));
}

// ---- Chaining: field cases ----------------------------------------------------------------------

// Field case 44: a block's key covers all before it, not the block alone.
TEST_F(PromptKeys, OfTheSameBlockDifferBehindAnotherBlock) {
  const std::string a = random_text(256, 8);
  const std::string b = random_text(256, 9);
  const std::string c = random_text(256, 10);
  EXPECT_NE(text_keys(a + b)[1], text_keys(c + b)[1]);
  EXPECT_EQ(text_keys(a + b)[0], text_keys(a + c)[0]);
}

// Field case 44, the other half: linear, so each byte is looked at once. Seen by hashing blocks
// whose memory holds other bytes by the time the next one is hashed: a key that looked back would
// differ.
TEST_F(PromptKeys, ReadEachBlockOnce) {
  const std::string text = random_text(3 * 256, 11);
  const Keys whole = text_keys(text);
  std::uint64_t key = hasher_.root(kText, "model", 5, nullptr, 0);
  for (std::size_t block = 0; block < 3; ++block) {
    const std::string alone = text.substr(block * 256, 256);  // nothing else of the text is given
    const std::vector<pickd_slice> segments{{alone.data(), alone.size()}};
    const Prompt prompt = prompt_of(segments);
    hash_prompt(hasher_, kText, key, prompt, 1, &key);
    EXPECT_EQ(key, whole[block]);
  }
}

// Field case 47: two unrelated prompts of one model share nothing, not even a first "model" key;
// and prompts shorter than a block are never shared unless they are equal.
TEST_F(PromptKeys, OfUnrelatedPromptsShareNothing) {
  EXPECT_EQ(common_prefix(text_keys(random_text(5000, 12)), text_keys(random_text(5000, 13))), 0U);
  EXPECT_EQ(common_prefix(text_keys("hello"), text_keys("world")), 0U);
  EXPECT_EQ(common_prefix(text_keys("hello"), text_keys("hello")), 1U);
  EXPECT_EQ(common_prefix(text_keys("hello"), text_keys("hello, you")), 0U);
}

// Field case 104: fields are framed by their lengths.
TEST_F(PromptKeys, OfModelAndSaltAreFramed) {
  const std::string text = "the same prompt";
  const std::vector<pickd_slice> segments{{text.data(), text.size()}};
  const Prompt prompt = prompt_of(segments);
  EXPECT_NE(keys_of(prompt, kText, kAll, "ab", "c"), keys_of(prompt, kText, kAll, "a", "bc"));
  EXPECT_NE(keys_of(prompt, kText, kAll, "m", "org_12345"),
            keys_of(prompt, kText, kAll, "m", "org_1"));
  EXPECT_NE(text_keys("modeltext"), keys_of(prompt, kText, kAll, "modeltext"));
}

// ---- Text and tokens ----------------------------------------------------------------------------

TEST_F(PromptKeys, OfTextAndTokensDifferForTheSameBytes) {
  const std::vector<std::uint32_t> ids(64, 0x61616161);  // "aaaa"
  EXPECT_NE(token_keys(ids), text_keys(std::string(256, 'a')));
}

TEST_F(PromptKeys, OfTokensTakeSixtyFourIdsABlock) {
  std::vector<std::uint32_t> ids(130);
  for (std::uint32_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const Keys keys = token_keys(ids);
  ASSERT_EQ(keys.size(), 3U);
  ids[64] = 99;
  EXPECT_EQ(common_prefix(keys, token_keys(ids)), 1U);
}

// ---- Extras -------------------------------------------------------------------------------------

constexpr char kImage[] = "0123456789abcdef";
constexpr char kOtherImage[] = "fedcba9876543210";

pickd_extra extra(std::size_t offset, const char* digest) { return {offset, {digest, 16}}; }

TEST_F(PromptKeys, WithAnExtraChangeFromItsBlockOn) {
  const std::string text = random_text(4 * 256, 14);
  const Keys plain = text_keys(text);
  for (const std::size_t offset : {0U, 1U, 255U, 256U, 700U, 1023U}) {
    const Keys with = text_keys(text, {extra(offset, kImage)});
    ASSERT_EQ(with.size(), 4U);
    EXPECT_EQ(common_prefix(plain, with), offset / 256) << "offset " << offset;
    EXPECT_EQ(with, text_keys(text, {extra(offset, kImage)}));
    EXPECT_NE(with, text_keys(text, {extra(offset, kOtherImage)}));
    EXPECT_NE(with, text_keys(text, {extra(offset + 1, kImage)}));
  }
}

TEST_F(PromptKeys, WithAnExtraAtTheEndOfTheLastFullBlockHaveABlockMore) {
  const std::string text = random_text(512, 15);
  const Keys with = text_keys(text, {extra(512, kImage)});
  ASSERT_EQ(with.size(), 3U);
  EXPECT_EQ(common_prefix(text_keys(text), with), 2U);
  EXPECT_NE(with, text_keys(text, {extra(512, kOtherImage)}));
}

TEST_F(PromptKeys, OfAnImageAloneExist) {
  const Keys keys = text_keys("", {extra(0, kImage)});
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_NE(keys, text_keys("", {extra(0, kOtherImage)}));
}

TEST_F(PromptKeys, KeepTheOrderOfExtrasAtOnePlace) {
  const std::string text = random_text(256, 16);
  EXPECT_NE(text_keys(text, {extra(5, kImage), extra(5, kOtherImage)}),
            text_keys(text, {extra(5, kOtherImage), extra(5, kImage)}));
  EXPECT_NE(text_keys(text, {extra(5, kImage)}),
            text_keys(text, {extra(5, kImage), extra(5, kImage)}));
}

TEST_F(PromptKeys, CountExtrasOfTokensInIds) {
  const std::vector<std::uint32_t> ids(192, 7);
  EXPECT_EQ(common_prefix(token_keys(ids), token_keys(ids, {extra(63, kImage)})), 0U);
  EXPECT_EQ(common_prefix(token_keys(ids), token_keys(ids, {extra(64, kImage)})), 1U);
  EXPECT_EQ(common_prefix(token_keys(ids), token_keys(ids, {extra(128, kImage)})), 2U);
}

TEST_F(PromptKeys, ReadExtrasOutOfTheCallersLargerStructs) {
  struct Larger {
    pickd_extra extra;
    std::uint64_t mine;
  };
  const std::string text = random_text(1024, 17);
  const std::vector<pickd_slice> segments{{text.data(), text.size()}};
  const std::vector<Larger> larger{{extra(300, kImage), 1}, {extra(900, kOtherImage), 2}};
  Prompt prompt = prompt_of(segments);
  prompt.extras = larger.data();
  prompt.extra_count = larger.size();
  prompt.extra_stride = sizeof(Larger);
  EXPECT_EQ(keys_of(prompt, kText), text_keys(text, {extra(300, kImage), extra(900, kOtherImage)}));
}

// ---- Size ---------------------------------------------------------------------------------------

TEST_F(PromptKeys, OfSixtyFourMebibytesStopAtTheLimit) {
  const std::string text = random_text(64 << 20, 18);
  const std::vector<pickd_slice> segments{{text.data(), text.size()}};
  const Prompt prompt = prompt_of(segments);
  EXPECT_EQ(count_keys(prompt, kText), (64U << 20) / 256);
  const Keys keys = keys_of(prompt, kText, 2048);
  EXPECT_EQ(keys.size(), 2048U);
  EXPECT_EQ(keys, text_keys(std::string_view(text).substr(0, 2048 * 256)));
}

TEST_F(PromptKeys, TakeTheLongestBlocks) {
  abi::KeyAlgorithm longest = kText;
  longest.block_bytes = abi::kBlockTokensMax * abi::kBytesPerToken;
  const std::string text = random_text(3 * 4096 + 5, 19);
  const std::vector<pickd_slice> one{{text.data(), text.size()}};
  const std::vector<pickd_slice> two{{text.data(), 5000}, {text.data() + 5000, text.size() - 5000}};
  EXPECT_EQ(keys_of(prompt_of(one), longest), keys_of(prompt_of(two), longest));
  EXPECT_EQ(keys_of(prompt_of(one), longest).size(), 4U);
}

}  // namespace
}  // namespace pickd::client

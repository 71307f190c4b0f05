// Prefix keys have golden values: two libraries that disagree share no prefix, and nobody would
// notice.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

#include "abi/key.hpp"

namespace pickd::abi {
namespace {

constexpr KeyAlgorithm kText{1, KeyKind::kText, 1, 0, 256};
constexpr KeyAlgorithm kTokens{2, KeyKind::kTokens, 1, 0, 256};

// Secret of the golden vectors: byte i is (i * 167 + 13) mod 256.
std::array<std::uint8_t, kHashSecretBytes> golden_secret() {
  std::array<std::uint8_t, kHashSecretBytes> secret;
  for (std::size_t i = 0; i < secret.size(); ++i)
    secret[i] = static_cast<std::uint8_t>(i * 167 + 13);
  return secret;
}

class Key : public testing::Test {
 protected:
  std::uint64_t root(const KeyAlgorithm& algorithm, std::string_view model, std::string_view salt) {
    return hasher_.root(algorithm, model.data(), model.size(), salt.data(), salt.size());
  }
  std::uint64_t hash(std::string_view bytes) { return hasher_.hash(bytes.data(), bytes.size()); }

  std::array<std::uint8_t, kHashSecretBytes> secret_ = golden_secret();
  KeyHasher hasher_{secret_.data()};
};

TEST_F(Key, HasGoldenHashes) {
  EXPECT_EQ(hash(""), 0x4371D43F1F7DE86DULL);
  EXPECT_EQ(hash("a"), 0x3158C5D991938A9EULL);
  EXPECT_EQ(hash(std::string(100, 'x')), 0x9F40BBA557F7BB04ULL);
  EXPECT_EQ(hash(std::string(256, 'x')), 0xDA8BE0DDC1D312ABULL);
  EXPECT_EQ(hash(std::string(4096, 'x')), 0xA84368D157172FF8ULL);
}

TEST_F(Key, HasGoldenRoots) {
  EXPECT_EQ(root(kText, "", ""), 0x01B7F0CC3C9CDD24ULL);
  EXPECT_EQ(root(kText, "llama-3.1-70b", ""), 0xA8C65EE7D2B9155BULL);
  EXPECT_EQ(root(kText, "llama-3.1-70b", "tenant 1"), 0x417D4B632CC35585ULL);
  EXPECT_EQ(root(kTokens, "llama-3.1-70b", ""), 0xDDDE4BE18E64A3BFULL);
}

TEST_F(Key, HasGoldenChains) {
  const std::uint64_t first = hasher_.chain(root(kText, "m", ""), hash(std::string(256, 'a')));
  EXPECT_EQ(first, 0x81F5CB854297A185ULL);
  EXPECT_EQ(hasher_.chain(first, hash("tail")), 0x937D5A55CEF52AB0ULL);
  EXPECT_EQ(hasher_.with_extra(hash("tail"), 3, "0123456789abcdef", 16), 0xA11C82044C98314FULL);
}

// Field case 104: model "ab" with salt "c" is not model "a" with salt "bc".
TEST_F(Key, FramesModelAndSaltByTheirLengths) {
  EXPECT_NE(root(kText, "ab", "c"), root(kText, "a", "bc"));
  EXPECT_NE(root(kText, "org_12345", ""), root(kText, "org_1", "2345"));
  EXPECT_NE(root(kText, "", "x"), root(kText, "x", ""));
}

TEST_F(Key, KeepsAlgorithmsApart) {
  KeyAlgorithm other = kText;
  other.block_bytes = 512;
  EXPECT_NE(root(kText, "m", ""), root(kTokens, "m", ""));
  EXPECT_NE(root(kText, "m", ""), root(other, "m", ""));
}

TEST_F(Key, ChainsInOneDirectionOnly) {
  const std::uint64_t a = hash("block a");
  const std::uint64_t b = hash("block b");
  EXPECT_NE(hasher_.chain(a, b), hasher_.chain(b, a));
  EXPECT_NE(hasher_.chain(0, a), a) << "a block alone is not its own key";
}

TEST_F(Key, TellsExtrasApartByPlaceAndDigest) {
  const std::uint64_t block = hash("block");
  const char digest[] = "0123456789abcdef";
  const char other[] = "0123456789abcdeF";
  EXPECT_NE(hasher_.with_extra(block, 0, digest, 16), block);
  EXPECT_NE(hasher_.with_extra(block, 0, digest, 16), hasher_.with_extra(block, 1, digest, 16));
  EXPECT_NE(hasher_.with_extra(block, 0, digest, 16), hasher_.with_extra(block, 0, other, 16));
}

TEST_F(Key, DiffersFromOneSecretToTheNext) {
  auto secret = golden_secret();
  secret[20] ^= 1;
  const KeyHasher other(secret.data());
  const std::string block(256, 'x');
  EXPECT_NE(hasher_.hash(block.data(), block.size()), other.hash(block.data(), block.size()));
}

TEST_F(Key, RepeatsNoKeyInALongChain) {
  std::unordered_set<std::uint64_t> keys;
  std::uint64_t key = root(kText, "m", "");
  const std::uint64_t block = hash(std::string(256, '\0'));  // the same block again and again
  for (int i = 0; i < 100'000; ++i) keys.insert(key = hasher_.chain(key, block));
  EXPECT_EQ(keys.size(), 100'000U);
}

}  // namespace
}  // namespace pickd::abi

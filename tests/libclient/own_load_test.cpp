// What a client has put on endpoints by itself, against a list that forgets nothing by accident.
#include "libclient/own_load.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace pickd::client {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

TEST(OwnLoad, EndsInPartsAndAsAWhole) {
  const auto own = std::make_unique<OwnLoad>();
  own->add(7, 3, 100, 20, 0);
  EXPECT_EQ(own->tokens(3), 120U);
  own->first_token(7);
  own->first_token(7);
  EXPECT_EQ(own->tokens(3), 20U);
  own->move(7, 4);
  EXPECT_EQ(own->tokens(3), 0U);
  EXPECT_EQ(own->tokens(4), 20U);
  EXPECT_TRUE(own->end(7));
  EXPECT_FALSE(own->end(7));
  EXPECT_EQ(own->tokens(4), 0U);
}

TEST(OwnLoad, KnowsNothingOfOthersTickets) {
  const auto own = std::make_unique<OwnLoad>();
  own->add(7, 3, 100, 20, 0);
  const std::uint64_t same_place = 7 + 4096;
  own->first_token(same_place);
  own->move(same_place, 5);
  EXPECT_FALSE(own->end(same_place));
  EXPECT_FALSE(own->has(0));
  EXPECT_EQ(own->tokens(3), 120U);
  own->add(same_place, 5, 1, 1, 0);
  EXPECT_EQ(own->tokens(3), 0U) << "the older one gave way";
  EXPECT_EQ(own->tokens(5), 2U);
}

TEST(OwnLoad, AgreesWithAListWhateverIsReported) {
  struct Entry {
    std::uint32_t endpoint;
    std::uint64_t prefill;
    std::uint64_t decode;
    std::uint64_t since_ns;
  };
  const auto own = std::make_unique<OwnLoad>();
  std::map<std::uint64_t, Entry> list;
  std::mt19937_64 random(1);
  std::uint64_t sequence = 0;
  std::uint64_t now_ns = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::uint64_t some = sequence == 0 ? 0 : 1 + random() % sequence;
    const auto at = list.find(some);
    switch (random() % 6) {
      case 0:
        own->first_token(some);
        if (at != list.end()) at->second.prefill = 0;
        break;
      case 1: {
        const auto to = static_cast<std::uint32_t>(1 + random() % 9);
        own->move(some, to);
        if (at != list.end()) at->second.endpoint = to;
        break;
      }
      case 2:
        EXPECT_EQ(own->end(some), at != list.end());
        if (at != list.end()) list.erase(at);
        break;
      case 3:
        now_ns += kSecondNs;
        own->age(now_ns);
        std::erase_if(list, [now_ns](const auto& entry) {
          return now_ns - entry.second.since_ns >= OwnLoad::kLifeNs;
        });
        break;
      default: {
        if (list.size() == 4000) break;  // fewer than there are places for
        ++sequence;
        list.erase(sequence - 4096);
        const Entry entry{static_cast<std::uint32_t>(1 + random() % 9), random() % 5000,
                          random() % 500, now_ns};
        own->add(sequence, entry.endpoint, entry.prefill, entry.decode, now_ns);
        list[sequence] = entry;
      }
    }
    std::uint64_t sums[10] = {};
    for (const auto& [number, entry] : list) sums[entry.endpoint] += entry.prefill + entry.decode;
    for (std::uint32_t endpoint = 1; endpoint < 10; ++endpoint)
      ASSERT_EQ(own->tokens(endpoint), sums[endpoint]) << turn;
  }
}

}  // namespace
}  // namespace pickd::client

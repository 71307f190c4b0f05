// Matching without the daemon: the words' rules, and the library's own idea of time.
#include "libclient/prefix_match.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/libclient/support.hpp"

namespace pickd::client {
namespace {

constexpr std::uint64_t kNow = 100'000;
constexpr std::uint64_t kTtlTicks = 1000;

// A segment with 16 endpoint ids and 64 lines, written by the test as a daemon would.
class PrefixMatch : public testing::Test {
 protected:
  void SetUp() override {
    Fd segment = make_state_segment([](abi::StateHeader& header) {
      header.clock_mode = static_cast<std::uint32_t>(abi::ClockMode::kVirtual);
      header.tick_ns = abi::kTickNs;
      header.endpoint_ids = 16;
      header.endpoints_offset = 8192;
      header.prefix_offset = 20'480;
      header.prefix_lines = 64;
      header.ttl_ticks = kTtlTicks;
      header.blocks_min = 1;
      header.blocks_max = 4096;
      header.virtual_tick.store(kNow);
    });
    memory_ = static_cast<char*>(
        ::mmap(nullptr, kTestStateBytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0));
    LastError error;
    ASSERT_EQ(view_.map(std::move(segment), error), 0) << last_error(error);
    ASSERT_TRUE(view_.store().usable());
    for (std::uint64_t at = 0; at < keys_.size(); ++at) keys_[at] = (at + 1) * 0x9E3779B97F4A7C15;
  }
  void TearDown() override { ::munmap(memory_, kTestStateBytes); }

  void put(std::uint64_t key, std::uint32_t endpoint, std::uint64_t tick,
           abi::Tier tier = abi::Tier::kAssumed) {
    const abi::KeyPlace place = abi::place_of(key, 64);
    auto* words = reinterpret_cast<abi::Word*>(memory_ + 20'480);
    const auto stamp = static_cast<std::uint32_t>(tick) & abi::kStampMask;
    for (const std::uint64_t line : {place.line_a, place.line_b}) {
      for (std::uint64_t at = line * 8; at < line * 8 + 8; ++at) {
        if (words[at].load() != 0) continue;
        words[at].store(abi::PrefixWord::make(place.tag, tier, endpoint, stamp).bits);
        return;
      }
    }
    FAIL() << "no room for the word";
  }

  // Leading keys held by endpoints 1 to 12, whose horizon is `horizon`.
  std::vector<std::uint32_t> match(std::uint32_t horizon = 0) {
    columns_->count = 12;
    for (std::uint32_t at = 0; at < 12; ++at) {
      columns_->ids[at] = static_cast<std::uint16_t>(at + 1);
      columns_->lives[at] = abi::LifeWord::make(1, 0, horizon).bits;
    }
    const StoreView& store = view_.store();
    match_prefix(store, store.tick(), keys_.data(), static_cast<std::uint32_t>(keys_.size()),
                 *columns_);
    return {columns_->blocks, columns_->blocks + 12};
  }

  StateView view_;
  char* memory_ = nullptr;
  std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(30);
  std::unique_ptr<MatchColumns> columns_ = std::make_unique<MatchColumns>();
};

TEST_F(PrefixMatch, FindsHowFarEachEndpointGoes) {
  for (std::uint32_t endpoint : {1U, 2U, 3U}) {
    for (std::uint32_t at = 0; at < 9 * endpoint; ++at) put(keys_[at], endpoint, kNow);
  }
  put(keys_[5], 4, kNow);  // not its beginning
  const auto blocks = match();
  EXPECT_EQ(blocks[0], 9U);
  EXPECT_EQ(blocks[1], 18U);
  EXPECT_EQ(blocks[2], 27U);
  EXPECT_EQ(blocks[3], 0U);
}

TEST_F(PrefixMatch, ForgetsWhatIsOlderThanTheTtlThoughNobodyRaisesTheHorizon) {
  put(keys_[0], 1, kNow - kTtlTicks);
  put(keys_[0], 2, kNow - kTtlTicks - 1);
  put(keys_[0], 3, kNow - kTtlTicks - 1, abi::Tier::kGpu);
  const auto blocks = match(static_cast<std::uint32_t>(kNow - 5 * kTtlTicks));
  EXPECT_EQ(blocks[0], 1U);
  EXPECT_EQ(blocks[1], 0U);
  EXPECT_EQ(blocks[2], 1U) << "what an engine confirmed has no TTL";
}

TEST_F(PrefixMatch, HeedsAHorizonThatIsNewerThanTheTtl) {
  put(keys_[0], 1, kNow - 10);
  EXPECT_EQ(match(static_cast<std::uint32_t>(kNow - 9))[0], 0U);
  EXPECT_EQ(match(static_cast<std::uint32_t>(kNow - 10))[0], 1U);
}

TEST_F(PrefixMatch, LooksIntoTheGroupsOfAHotBlock) {
  put(abi::group_key(keys_[0], 9), 9, kNow);
  EXPECT_EQ(match()[8], 0U) << "without a marker nobody looks there";
  put(keys_[0], abi::kMarkerEndpoint, kNow);
  EXPECT_EQ(match()[8], 1U);
}

TEST_F(PrefixMatch, SurvivesAnyContentOfTheTable) {
  std::uint64_t random = 42;
  auto* words = reinterpret_cast<abi::Word*>(memory_ + 20'480);
  for (std::uint64_t at = 0; at < 64 * 8; ++at) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    // Real tags with any endpoint: ids that are no candidates too.
    words[at].store((keys_[at % 30] << 34) | (random >> 30));
  }
  for (const std::uint32_t blocks : match()) EXPECT_LE(blocks, 30U);
}

}  // namespace
}  // namespace pickd::client

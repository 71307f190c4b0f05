// One pick: what it answers, what it reserves, what it remembers and what it leaves alone.
#include <cmath>
#include <set>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

TEST(Pick, ReservesTheRequestAndItsUncachedTokensInTheSameStep) {
  PickRig rig;
  rig.add_endpoints(2);
  const auto keys = chain(1, 10);
  const auto request = rig.request(keys);
  const PickResult result = rig.pick_only(request);
  const std::string winner = rig.name(result);
  EXPECT_TRUE(result.reserved);
  EXPECT_EQ(rig.inflight(winner), 1U);
  EXPECT_EQ(rig.inflight_tokens(winner), 640U);
  EXPECT_EQ(rig.reservations().holder(request.ticket),
            abi::endpoint_handle(result.endpoints[0].endpoint->id, result.endpoints[0].generation));
  EXPECT_EQ(rig.counted(abi::Counter::picks), 1U);
  EXPECT_EQ(rig.counted(abi::Counter::prompt_blocks), 10U);
  EXPECT_EQ(rig.counted(abi::Counter::match_blocks), 0U);
}

TEST(Pick, ReservesOnlyWhatIsNotCached) {
  PickRig rig;
  rig.add_endpoints(2);
  const auto keys = chain(1, 10);
  const std::string first = rig.served(rig.request(keys));
  const auto longer = chain(2, 5, keys);
  const PickResult result = rig.pick(rig.request(longer, 15 * 64 - 3));
  EXPECT_EQ(rig.name(result), first);
  EXPECT_EQ(result.reason, abi::Reason::kPrefix);
  EXPECT_EQ(result.endpoints[0].match_blocks, 10U);
  EXPECT_EQ(result.endpoints[0].match_tokens, 640U);
  EXPECT_EQ(rig.inflight_tokens(first), 15U * 64 - 3 - 640);
  EXPECT_EQ(rig.counted(abi::Counter::match_blocks), 10U);
  EXPECT_EQ(rig.counted(abi::Counter::stamped_blocks), 25U);
}

TEST(Pick, NeverCountsMoreTokensAsCachedThanThePromptHas) {
  PickRig rig;
  rig.add_endpoints(1);
  const auto keys = chain(1, 10);
  rig.served(rig.request(keys, 600));  // the last block is a tail
  const PickResult result = rig.pick(rig.request(keys, 600));
  EXPECT_EQ(result.endpoints[0].match_tokens, 600U);
  EXPECT_EQ(rig.inflight_tokens("e1"), 0U);
}

TEST(Pick, ShowsABurstOfEqualPromptsTheFirstPicksEffect) {
  PickRig rig;
  rig.add_endpoints(4);
  const auto keys = chain(1, 20);
  const std::string first = rig.winner(rig.request(keys));
  EXPECT_EQ(rig.name(rig.pick_only(rig.request(keys))), first);
}

TEST(Pick, ReservesAndRemembersNothingInADryRun) {
  PickRig rig;
  rig.add_endpoints(2);
  const auto keys = chain(1, 10);
  auto request = rig.request(keys);
  request.dry_run = true;
  request.session = "s";
  request.adapter = "a";
  const PickResult result = rig.pick(request);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.count, 2U);
  EXPECT_FALSE(result.reserved);
  EXPECT_EQ(rig.reservations().count_held(), 0U);
  EXPECT_EQ(rig.inflight("e1") + rig.inflight("e2"), 0U);
  EXPECT_EQ(rig.counted(abi::Counter::stamped_blocks), 0U);
  for (const char* name : {"e1", "e2"}) EXPECT_EQ(rig.record(name).adapters_recent[0].load(), 0U);
  EXPECT_EQ(rig.pick_only(rig.request(keys)).endpoints[0].match_blocks, 0U);
}

TEST(Pick, ListsAsManyEndpointsAsWereAskedForAndNoneTwice) {
  PickRig rig;
  rig.add_endpoints(20);
  for (std::uint8_t wanted = 1; wanted <= 8; ++wanted) {
    auto request = rig.request();
    request.endpoints_max = wanted;
    const auto names = rig.names(rig.pick(request));
    EXPECT_EQ(names.size(), wanted);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), wanted);
  }
}

TEST(Pick, ListsFewerWhenThereAreFewer) {
  PickRig rig;
  rig.add_endpoints(3);
  EXPECT_EQ(rig.pick(rig.request()).count, 3U);
}

TEST(Pick, ListsFallbacksByTheirScore) {
  PickRig rig;
  rig.add_endpoints(4);
  rig.set_load("e1", 3, 0);
  rig.set_load("e2", 1, 0);
  rig.set_load("e3", 4, 0);
  rig.set_load("e4", 2, 0);
  const PickResult result = rig.pick(rig.request());
  EXPECT_EQ(rig.names(result), (std::vector<std::string>{"e2", "e4", "e1", "e3"}));
  for (std::uint32_t at = 1; at < result.count; ++at) {
    EXPECT_LT(result.endpoints[at].score, result.endpoints[at - 1].score);
  }
}

TEST(Pick, SaysNothingOfLatenciesWhereNoneAreLearned) {
  RigOptions options;
  options.predicts = false;
  PickRig rig(options);
  rig.add_endpoints(1);
  const PickResult result = rig.pick(rig.request());
  EXPECT_TRUE(std::isnan(result.predicted_ttft_ms));
  EXPECT_TRUE(std::isnan(result.predicted_itl_ms));
}

TEST(Pick, SaysWhyTheWinnerWon) {
  PickRig rig;
  rig.add_endpoints(1);
  EXPECT_EQ(rig.pick(rig.request()).reason, abi::Reason::kOnly);
  rig.add(rig.spec("e2"));
  rig.tick += 10;
  rig.set_load("e1", 0, 0);
  EXPECT_EQ(rig.pick_only(rig.request()).reason, abi::Reason::kTie);
  rig.set_load("e1", 0, 0);
  rig.set_load("e2", 5, 0);
  EXPECT_EQ(rig.pick_only(rig.request()).reason, abi::Reason::kScore);
  const auto keys = chain(1, 4);
  rig.served(rig.request(keys));
  EXPECT_EQ(rig.pick_only(rig.request(keys)).reason, abi::Reason::kPrefix);
}

TEST(Pick, AnswersWithoutAReservationWhenTheTableIsFull) {
  PickRig rig;
  rig.add_endpoints(1);
  std::uint64_t refused = 0;
  for (std::uint32_t at = 0; at < 2 * PickRig::kSlots; ++at) {
    const PickResult result = rig.pick_only(rig.request());
    ASSERT_EQ(result.status, 0);
    refused += result.reserved ? 0 : 1;
  }
  EXPECT_EQ(rig.counted(abi::Counter::reservations_full), refused);
  EXPECT_EQ(rig.inflight("e1"), 2 * PickRig::kSlots - refused);
  EXPECT_GE(refused, PickRig::kSlots);
}

// Field case 23: pick, remove, and then the late insert of that pick.
TEST(Pick, DropsALateMemoryOfAnEndpointThatWasRemoved) {
  PickRig rig;
  rig.add_endpoints(1);
  const auto keys = chain(1, 10);
  const auto request = rig.request(keys);
  const PickResult result = rig.pick_only(request);
  ASSERT_TRUE(rig.endpoint_table().remove("e1", rig.tick).ok());
  rig.remember(request, result);
  rig.add(rig.spec("e1"));
  rig.tick += 10;
  EXPECT_EQ(rig.pick(rig.request(keys)).endpoints[0].match_blocks, 0U);
}

TEST(Pick, DropsALateMemoryOfAnEndpointThatWasReset) {
  PickRig rig;
  rig.add_endpoints(1);
  const auto keys = chain(1, 10);
  for (int resets = 1; resets <= 3; ++resets) {  // in one tick, with picks between
    const auto request = rig.request(keys);
    const PickResult result = rig.pick_only(request);
    EXPECT_EQ(result.endpoints[0].match_blocks, 0U) << resets;
    ASSERT_TRUE(rig.endpoint_table().reset("e1", rig.tick).ok());
    rig.remember(request, result);
    EXPECT_EQ(rig.pick_only(rig.request(keys)).endpoints[0].match_blocks, 0U) << resets;
  }
  rig.tick += 1000;
  EXPECT_EQ(rig.pick_only(rig.request(keys)).endpoints[0].match_blocks, 0U);
}

TEST(Pick, RemembersWhatIsPickedInTheTickOfAReset) {
  PickRig rig;
  rig.add_endpoints(1);
  const auto keys = chain(1, 10);
  ASSERT_TRUE(rig.endpoint_table().reset("e1", rig.tick).ok());
  rig.pick(rig.request(keys));
  EXPECT_EQ(rig.pick(rig.request(keys)).endpoints[0].match_blocks, 10U);
}

// Field case 22 at the pick: after a removal nothing names the endpoint.
TEST(Pick, NeverNamesARemovedEndpoint) {
  PickRig rig;
  rig.add_endpoints(3);
  const auto keys = chain(1, 10);
  const std::string holder = rig.served(rig.request(keys));
  ASSERT_TRUE(rig.endpoint_table().remove(holder, rig.tick).ok());
  for (int turn = 0; turn < 100; ++turn) {
    for (const std::string& name : rig.names(rig.pick(rig.request(keys)))) {
      ASSERT_NE(name, holder);
    }
  }
}

TEST(Pick, LooksAtNoBlocksBeyondTheLongestPrefixThatCounts) {
  RigOptions options;
  options.blocks_max = 8;
  PickRig rig(options);
  rig.add_endpoints(1);
  const auto keys = chain(1, 100);
  rig.pick(rig.request(keys));
  EXPECT_EQ(rig.counted(abi::Counter::stamped_blocks), 8U);
  EXPECT_EQ(rig.pick(rig.request(keys)).endpoints[0].match_blocks, 8U);
}

}  // namespace
}  // namespace pickd::pick::test

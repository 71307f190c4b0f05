// Field cases of spread and affinity, by the policies that operators get by name.
#include <algorithm>
#include <deque>
#include <fstream>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

std::uint32_t most(const Tally& tally) {
  std::uint32_t found = 0;
  for (const auto& [name, count] : tally) found = std::max(found, count);
  return found;
}
std::uint32_t least(const Tally& tally) {
  std::uint32_t found = ~0U;
  for (const auto& [name, count] : tally) found = std::min(found, count);
  return found;
}

class FieldCases : public ::testing::TestWithParam<const char*> {
 protected:
  RigOptions options() const {
    RigOptions made;
    made.profile = GetParam();
    return made;
  }
};

// Case 1: the maintainers' stable sort took the first of equals, always.
TEST_P(FieldCases, FourIdleEndpointsShareUnrelatedPrompts) {
  PickRig rig(options());
  rig.add_endpoints(4);
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 4000; ++prompt) {
    const auto keys = chain(prompt, 4);
    ++tally[rig.served(rig.request(keys))];
    ++rig.tick;
  }
  ASSERT_EQ(tally.size(), 4U);
  EXPECT_GE(least(tally), 900U);
  EXPECT_LE(most(tally), 1100U);
}

// Case 4: at low concurrency a miss always went to replica 0.
TEST_P(FieldCases, FourHundredDistinctPromptsOneAtATimeUseEveryEndpoint) {
  PickRig rig(options());
  rig.add_endpoints(4);
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 400; ++prompt) {
    const auto keys = chain(prompt, 40);
    ++tally[rig.served(rig.request(keys))];
  }
  ASSERT_EQ(tally.size(), 4U);
  EXPECT_GE(least(tally), 70U);
  EXPECT_LE(most(tally), 130U);
}

// Case 7: load was counted when the stream began; 32k-token prompts all went to one.
TEST_P(FieldCases, AHundredPicksAtOnceSpreadEvenlyBeforeAnyStreamBegins) {
  PickRig rig(options());
  rig.add_endpoints(4);
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 100; ++prompt) {
    const auto keys = chain(prompt, 512);  // 32,768 tokens
    ++tally[rig.winner(rig.request(keys))];
  }
  ASSERT_EQ(tally.size(), 4U);
  EXPECT_GE(least(tally), 23U);
  EXPECT_LE(most(tally), 27U);
}

// Case 10: a shared system prompt of 200 characters matches everywhere one served it.
TEST_P(FieldCases, ASharedSystemPromptDoesNotGatherAThousandRequestsOnOne) {
  RigOptions made = options();
  made.block_tokens = 16;  // 64 characters: the 200 are three whole blocks
  made.lines = 1 << 16;
  PickRig rig(made);
  rig.add_endpoints(4);
  const auto shared = chain(77, 3);
  Tally tally;
  std::deque<endpoints::Ticket> running;
  for (std::uint64_t prompt = 0; prompt < 1000; ++prompt) {
    const auto keys = chain(1000 + prompt, 29, shared);
    const auto request = rig.request(keys);
    ++tally[rig.winner(request)];
    running.push_back(request.ticket);
    if (running.size() > 16) {
      rig.reservations().end(running.front(), PickRig::kUid);
      running.pop_front();
    }
    ++rig.tick;
  }
  ASSERT_EQ(tally.size(), 4U);
  EXPECT_LE(most(tally), 400U);
  EXPECT_GE(least(tally), 150U);
}

// Case 10, one request at a time: what the threshold is for.
TEST_P(FieldCases, AMatchBelowTheShortestThatCountsMovesNobody) {
  RigOptions made = options();
  made.block_tokens = 16;
  made.blocks_min = 4;
  made.lines = 1 << 16;
  PickRig rig(made);
  rig.add_endpoints(4);
  const auto shared = chain(77, 3);
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 1000; ++prompt) {
    const auto keys = chain(1000 + prompt, 29, shared);
    ++tally[rig.served(rig.request(keys))];
    ++rig.tick;
  }
  ASSERT_EQ(tally.size(), 4U);
  EXPECT_GE(least(tally), 200U);
  EXPECT_LE(most(tally), 300U);
}

INSTANTIATE_TEST_SUITE_P(Each, FieldCases,
                         ::testing::Values("least-predicted-cost", "prefix-load"));

// Case 1 for those that score by what engines tell, when none tells anything.
TEST(FieldCasesByName, FourSilentEndpointsShareUnrelatedPromptsUnderEppDefault) {
  RigOptions options;
  options.profile = "epp-default";
  PickRig rig(options);
  rig.add_endpoints(4);
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 4000; ++prompt) {
    const auto keys = chain(prompt, 4);
    ++tally[rig.served(rig.request(keys))];
  }
  ASSERT_EQ(tally.size(), 4U);
  EXPECT_GE(least(tally), 900U);
  EXPECT_LE(most(tally), 1100U);
}

// Case 5: whoever holds few blocks is not idle for that.
TEST(FieldCasesByName, AMissGoesToTheIdleEndpointHoweverMuchItHolds) {
  for (const char* profile : {"prefix-load", "least-request"}) {
    RigOptions options;
    options.profile = profile;
    PickRig rig(options);
    rig.add_endpoints(2);
    const auto now = static_cast<std::uint32_t>(rig.tick);
    rig.table().stamp(chain(1, 10), 1, now, abi::Tier::kAssumed, now);
    rig.table().stamp(chain(2, 10'000), 2, now, abi::Tier::kAssumed, now);
    rig.set_load("e1", 50, 50'000);
    for (std::uint64_t prompt = 0; prompt < 40; ++prompt) {
      const auto keys = chain(100 + prompt, 20);
      ASSERT_EQ(rig.served(rig.request(keys)), "e2") << profile << " " << prompt;
    }
  }
}

// Case 11: a prompt at or below the threshold is inserted all the same.
TEST(FieldCasesByName, APromptBelowTheThresholdIsRememberedForTheNextTurn) {
  for (const std::size_t first_blocks : {1, 2}) {
    for (std::uint64_t trial = 0; trial < 50; ++trial) {
      RigOptions options;
      options.blocks_min = 2;
      options.seed = trial + 1;
      PickRig rig(options);
      rig.add_endpoints(8);
      // The first turn has the shared block and, at the threshold, another.
      const auto first_turn = chain(trial, first_blocks);
      const std::string first = rig.served(rig.request(first_turn));
      const auto second_turn = chain(trial + 1000, 3, first_turn);
      const PickResult second = rig.pick_only(rig.request(second_turn));
      if (first_blocks == 2) {
        ASSERT_EQ(rig.name(second), first);
        ASSERT_EQ(second.endpoints[0].match_blocks, 2U);
      }
      rig.remember(rig.request(second_turn), second);
      rig.set_load(rig.name(second), 0, 0);
      const auto third_turn = chain(trial + 2000, 3, second_turn);
      const PickResult third = rig.pick_only(rig.request(third_turn));
      ASSERT_EQ(rig.name(third), rig.name(second)) << "the second turn is there as a whole";
      ASSERT_EQ(third.endpoints[0].match_blocks, second_turn.size());
    }
  }
}

// Case 31 at the pick: an endpoint flaps; the old request's end is not the new one's.
TEST(FieldCasesByName, AFlappingEndpointCountsOnlyItsOwnGeneration) {
  PickRig rig;
  rig.add_endpoints(1);
  const auto a = rig.request();
  rig.pick(a);
  ASSERT_TRUE(rig.endpoint_table().remove("e1", rig.tick).ok());
  rig.add(rig.spec("e1"));
  const auto b = rig.request();
  rig.pick(b);
  rig.reservations().end(a.ticket, PickRig::kUid);
  EXPECT_EQ(rig.inflight("e1"), 1U);
  rig.reservations().end(b.ticket, PickRig::kUid);
  EXPECT_EQ(rig.inflight("e1"), 0U);
}

// Case 34: endpoints nobody scraped yet are neither full nor out of the question.
TEST(FieldCasesByName, FreshEndpointsWithoutAScrapeArePicked) {
  for (const char* profile : {"prefix-load", "epp-default"}) {
    RigOptions options;
    options.profile = profile;
    PickRig rig(options);
    rig.add_endpoints(2);
    EXPECT_EQ(rig.pick(rig.request()).status, 0) << profile;
  }
}

// Case 47: unrelated prompts of one model share nothing.
TEST(FieldCasesByName, UnrelatedPromptsOfOneModelMatchNothing) {
  PickRig rig;
  rig.add_endpoints(2);
  rig.pick(rig.request(chain(1, 5)));
  const auto other = chain(2, 5);
  const PickResult result = rig.pick(rig.request(other));
  for (std::uint32_t at = 0; at < result.count; ++at) {
    EXPECT_EQ(result.endpoints[at].match_blocks, 0U);
  }
}

// Case 10, in full: every request of the conversation trace shares its first block.
TEST(ConversationTrace, DoesNotGatherOnOneEndpoint) {
  const char* told = std::getenv("PICKD_TRACES");
  const std::string directory = told != nullptr ? told : PICKD_SOURCE_DIR "/../shared/traces";
  std::ifstream trace(directory + "/conversation_trace.jsonl");
  if (!trace)
    GTEST_SKIP() << "no conversation_trace.jsonl in " << directory << "; set PICKD_TRACES";
  RigOptions options;
  options.block_tokens = 512;
  options.lines = 1 << 17;
  PickRig rig(options);
  rig.add_endpoints(8);
  Tally tally;
  std::multimap<std::uint64_t, endpoints::Ticket> running;  // by when it ends
  std::uint64_t hit_blocks = 0;
  std::uint64_t blocks = 0;
  const std::uint64_t start = rig.tick;
  for (std::string line; std::getline(trace, line);) {
    const auto entry = nlohmann::json::parse(line);
    std::vector<std::uint64_t> keys;
    std::uint64_t parent = 1;
    for (const std::uint64_t id : entry["hash_ids"]) {
      keys.push_back(parent = base::Random(parent * 31 + id).next());
    }
    rig.tick = start + entry["timestamp"].get<std::uint64_t>() / 50;
    while (!running.empty() && running.begin()->first <= rig.tick) {
      rig.reservations().end(running.begin()->second, PickRig::kUid);
      running.erase(running.begin());
    }
    const auto request = rig.request(keys, entry["input_length"].get<std::uint32_t>());
    const PickResult result = rig.pick(request);
    ++tally[rig.name(result)];
    hit_blocks += result.endpoints[0].match_blocks;
    blocks += keys.size();
    // 20 ms a token.
    running.emplace(rig.tick + 1 + entry["output_length"].get<std::uint64_t>() * 20 / 50,
                    request.ticket);
  }
  ASSERT_EQ(tally.size(), 8U);
  const std::uint32_t picks =
      std::accumulate(tally.begin(), tally.end(), 0U,
                      [](std::uint32_t sum, const auto& of) { return sum + of.second; });
  EXPECT_EQ(picks, 12'031U);
  EXPECT_LT(most(tally), picks / 4) << "an even share is an eighth";
  // The bound of an infinite shared cache is 37.4 % of the tokens.
  EXPECT_GT(static_cast<double>(hit_blocks) / static_cast<double>(blocks), 0.25);
}

}  // namespace
}  // namespace pickd::pick::test

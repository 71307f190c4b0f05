// least-predicted-cost-scorer: which costs are one cost. That an idle fleet is used evenly after
// traffic is tested with real daemons, in tests/system (scrape, kubernetes_discovery).
#include <cmath>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

// The blocks are a hundredth of the prompt, and save seconds all the same.
TEST(LeastPredictedCost, GoesForASmallShareOfALongPromptThatIsCached) {
  PickRig rig({.profile = "least-predicted-cost", .predicts = true});
  rig.add_endpoints(4);
  const auto keys = chain(1, 2048);
  constexpr std::uint32_t kPromptTokens = 16U << 20;
  const std::string holder = rig.served(rig.request(keys, kPromptTokens));
  for (int again = 0; again < 20; ++again) {
    EXPECT_EQ(rig.served(rig.request(keys, kPromptTokens)), holder);
  }
}

// Coefficients that cannot be: picks go by the composite score, and say so, until better ones come.
TEST(LeastPredictedCost, GoesByLoadAndPrefixAndSaysSoWhileTheModelIsBroken) {
  for (const double absurd : {std::nan(""), 1e300, -1.0}) {
    PickRig rig({.profile = "least-predicted-cost", .predicts = true});
    rig.add_endpoints(4);
    const auto keys = chain(1, 64);
    const std::string holder = rig.served(rig.request(keys, 64 * 64));
    latency::Coefficients broken;
    broken.classes[0].ttft[3] = absurd;
    rig.flights().publish(broken);
    for (int again = 0; again < 5; ++again) {
      const PickRequest request = rig.request(keys, 64 * 64);
      const PickResult result = rig.pick(request);
      ASSERT_EQ(result.status, 0);
      EXPECT_EQ(result.reason, abi::Reason::kUnpredicted) << absurd;
      EXPECT_EQ(PickRig::name(result), holder);
      EXPECT_TRUE(std::isnan(result.predicted_ttft_ms));
      rig.reservations().end(request.ticket, PickRig::kUid, nullptr, request.now_ns);
    }
    rig.flights().publish(latency::Coefficients{});
    const PickResult result = rig.pick(rig.request(keys, 64 * 64));
    EXPECT_NE(result.reason, abi::Reason::kUnpredicted);
    EXPECT_GT(result.predicted_ttft_ms, 0);
  }
}

float queued_tokens(PickRig& rig, const char* endpoint) {
  const std::uint32_t id = rig.topology().find_name(endpoint)->id;
  return rig.flights().live().load(id, rig.generation(endpoint), 2'000'000'000).queued_tokens;
}

// An engine computes the last block of a prompt that it holds whole: sixteen answers to one prompt
// are sixteen such blocks of queue.
TEST(LeastPredictedCost, CountsTheLastBlockOfACachedPromptAsQueued) {
  PickRig rig({.profile = "least-predicted-cost", .predicts = true});
  rig.add_endpoints(1);
  const auto keys = chain(1, 16);
  rig.served(rig.request(keys, 16 * 64));
  const float before = queued_tokens(rig, "e1");
  ASSERT_EQ(rig.pick(rig.request(keys, 16 * 64)).status, 0);
  EXPECT_FLOAT_EQ(queued_tokens(rig, "e1") - before, 64);
  ASSERT_EQ(rig.pick(rig.request(keys, 16 * 64 + 10)).status, 0);
  EXPECT_FLOAT_EQ(queued_tokens(rig, "e1") - before, 64 + 10);
}

// Expected output may count as load for other scorers; it is nothing that others' first tokens
// wait for.
TEST(LeastPredictedCost, CountsNoExpectedOutputAsQueued) {
  auto scheduled =
      scheduling({{"inflight-load-producer", std::nullopt, "{addEstimatedOutputTokens: true}"},
                  {"least-predicted-cost-scorer", 1},
                  {"max-score-picker"}});
  auto& used = scheduled.profiles.at(0).plugins;
  used.erase(used.begin());  // a source works by standing under `plugins`
  PickRig rig({.scheduling = scheduled});
  rig.add_endpoints(1);
  ASSERT_EQ(rig.pick(rig.request({}, 1000)).status, 0);
  EXPECT_EQ(rig.inflight_tokens("e1"), 2500U);
  EXPECT_FLOAT_EQ(queued_tokens(rig, "e1"), 1000);
}

}  // namespace
}  // namespace pickd::pick::test

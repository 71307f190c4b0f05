// least-predicted-cost-scorer: which costs are one cost. That an idle fleet is used evenly after
// traffic is tested with real daemons, in tests/system (scrape, kubernetes_discovery).
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

}  // namespace
}  // namespace pickd::pick::test

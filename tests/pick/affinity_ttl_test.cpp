// Field case 46: how long a request's affinity lasts is a setting, and the request's where it says
// so.
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

constexpr std::uint64_t kTicksPerSecond = 20;
constexpr std::uint64_t kMinute = 60 * kTicksPerSecond;

std::uint32_t match_after(PickRig& rig, std::span<const std::uint64_t> keys, std::uint64_t ttl_ms) {
  PickRequest request = rig.request(keys);
  request.dry_run = true;
  request.affinity_ttl_ms = ttl_ms;
  const PickResult result = rig.pick_only(request);
  return result.status == 0 ? result.endpoints[0].match_blocks : ~0U;
}

TEST(AffinityTtl, IsTheRequestsWhereItSaysOne) {
  PickRig rig;
  rig.add_endpoints(3);
  const auto keys = chain(1, 20);
  const auto request = rig.request(keys);
  rig.pick(request);
  rig.reservations().end(request.ticket, PickRig::kUid);
  rig.tick += 6 * kMinute;
  EXPECT_EQ(match_after(rig, keys, 300'000), 0U) << "five minutes";
  EXPECT_EQ(match_after(rig, keys, 3'600'000), 20U) << "an hour";
  EXPECT_EQ(match_after(rig, keys, 0), 20U) << "as configured";
  EXPECT_EQ(match_after(rig, keys, 360'000), 20U) << "to the tick";
  EXPECT_EQ(match_after(rig, keys, 359'950), 0U);
  EXPECT_EQ(match_after(rig, keys, 1), 0U) << "less than a tick";
}

TEST(AffinityTtl, OfOneRequestForgetsNothingForOthers) {
  PickRig rig;
  rig.add_endpoints(3);
  const auto keys = chain(1, 20);
  rig.pick(rig.request(keys));
  rig.tick += kMinute;
  EXPECT_EQ(match_after(rig, keys, 1000), 0U);
  EXPECT_EQ(match_after(rig, keys, 0), 20U);
}

TEST(AffinityTtl, NeverReachesBehindAResetOfTheEndpoint) {
  PickRig rig;
  rig.add_endpoints(1);
  const auto keys = chain(1, 20);
  rig.pick(rig.request(keys));
  rig.tick += kMinute;
  ASSERT_TRUE(rig.endpoint_table().reset("e1", rig.tick));
  rig.tick += kMinute;
  EXPECT_EQ(match_after(rig, keys, 3'600'000), 0U);
}

TEST(AffinityTtl, CountsForSessionsToo) {
  RigOptions options;
  options.scheduling = scheduling({{"session-affinity-scorer", 1.0, "{ttl: 1h}"}});
  PickRig rig(options);
  rig.add_endpoints(2);
  PickRequest request = rig.request();
  request.session = "s";
  const std::string first = rig.winner(request);
  rig.tick += 6 * kMinute;
  const auto reason_with = [&](std::uint64_t ttl_ms) {
    PickRequest next = rig.request();
    next.session = "s";
    next.dry_run = true;
    next.affinity_ttl_ms = ttl_ms;
    return rig.pick_only(next).reason;
  };
  EXPECT_EQ(reason_with(0), abi::Reason::kSession);
  EXPECT_EQ(reason_with(3'600'000), abi::Reason::kSession);
  EXPECT_NE(reason_with(300'000), abi::Reason::kSession);
}

}  // namespace
}  // namespace pickd::pick::test

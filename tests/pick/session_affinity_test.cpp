// Sessions stay where they were served: by id, for a time, in one generation of the endpoint.
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

constexpr std::uint64_t kTicksPerMinute = 60'000 / 50;

RigOptions sessions(const std::string& parameters = "") {
  RigOptions options;
  options.scheduling = scheduling({{"session-affinity-scorer", 1.0, parameters}});
  return options;
}

PickRequest of_session(PickRig& rig, std::string_view session) {
  auto request = rig.request();
  request.session = session;
  return request;
}

TEST(SessionAffinity, SendsASessionWhereItWasServedLast) {
  PickRig rig(sessions());
  rig.add_endpoints(8);
  Tally first_of;
  for (int session = 0; session < 200; ++session) {
    const std::string id = "session-" + std::to_string(session);
    const std::string first = rig.winner(of_session(rig, id));
    first_of[first]++;
    for (int turn = 0; turn < 3; ++turn) {
      const auto result = rig.pick(of_session(rig, id));
      ASSERT_EQ(rig.name(result), first);
      ASSERT_EQ(result.reason, abi::Reason::kSession);
      ASSERT_EQ(result.endpoints[0].score, 1.0F);
      ASSERT_EQ(result.endpoints[1].score, 0.0F);
    }
  }
  EXPECT_EQ(first_of.size(), 8U) << "new sessions spread";
}

TEST(SessionAffinity, ForgetsASessionAfterItsTimeWithoutAPick) {
  PickRig rig(sessions());  // 5 minutes
  rig.add_endpoints(8);
  const std::string first = rig.winner(of_session(rig, "s"));
  rig.tick += 5 * kTicksPerMinute;
  EXPECT_EQ(rig.winner(of_session(rig, "s")), first) << "just in time, and renewed by this pick";
  rig.tick += 5 * kTicksPerMinute;
  EXPECT_EQ(rig.winner(of_session(rig, "s")), first);
  rig.tick += 5 * kTicksPerMinute + 1;
  EXPECT_EQ(rig.pick(of_session(rig, "s")).reason, abi::Reason::kTie);
}

TEST(SessionAffinity, HonoursItsTtl) {
  PickRig rig(sessions("{ttl: 10s}"));
  rig.add_endpoints(8);
  rig.pick(of_session(rig, "s"));
  rig.tick += 200;
  auto request = of_session(rig, "s");
  request.dry_run = true;
  EXPECT_EQ(rig.pick(request).reason, abi::Reason::kSession);
  rig.tick += 1;
  EXPECT_EQ(rig.pick(request).reason, abi::Reason::kTie);
}

// Stamps are 20 bits of ticks: they come round after 14 hours and a half.
TEST(SessionAffinity, KeepsAForgottenSessionForgottenWhenTheStampsWrap) {
  const std::uint64_t wrap = 1ULL << abi::kStampBits;
  PickRig rig(sessions("{ttl: 10s}"));
  rig.add_endpoints(8);
  rig.pick(of_session(rig, "s"));
  const std::uint64_t then = rig.tick;
  auto request = of_session(rig, "s");
  request.dry_run = true;
  for (std::uint64_t age = 1000; age < 3 * wrap; age += 7001) {
    rig.tick = then + age;
    ASSERT_EQ(rig.pick(request).reason, abi::Reason::kTie) << age;
  }
  rig.tick = then + wrap + 3;
  EXPECT_EQ(rig.pick(request).reason, abi::Reason::kTie);
}

TEST(SessionAffinity, DoesNotSurviveANewGenerationOfItsEndpoint) {
  PickRig rig(sessions());
  rig.add_endpoints(4);
  const std::string first = rig.winner(of_session(rig, "s"));
  ASSERT_TRUE(rig.endpoint_table().reset(first, rig.tick).ok());
  auto request = of_session(rig, "s");
  request.dry_run = true;
  EXPECT_EQ(rig.pick(request).reason, abi::Reason::kTie);
}

// Field case 23, for sessions.
TEST(SessionAffinity, DropsTheLateMemoryOfAnEngineThatWasReset) {
  PickRig rig(sessions());
  rig.add_endpoints(4);
  auto request = of_session(rig, "s");
  const PickResult result = rig.pick_only(request);
  ASSERT_TRUE(rig.endpoint_table().reset(rig.name(result), rig.tick).ok());
  rig.remember(request, result);
  request.dry_run = true;
  EXPECT_EQ(rig.pick(request).reason, abi::Reason::kTie);
}

TEST(SessionAffinity, GivesWayWhenItsEndpointMayNotBePicked) {
  PickRig rig(sessions());
  rig.add_endpoints(4);
  const std::string first = rig.winner(of_session(rig, "s"));
  rig.set_state(first, abi::EndpointState::kDraining);
  const std::string second = rig.winner(of_session(rig, "s"));
  EXPECT_NE(second, first);
  rig.set_state(first, abi::EndpointState::kReady);
  EXPECT_EQ(rig.winner(of_session(rig, "s")), second) << "it moved with its last pick";
}

TEST(SessionAffinity, IsNotMadeByADryRun) {
  PickRig rig(sessions());
  rig.add_endpoints(8);
  auto request = of_session(rig, "s");
  request.dry_run = true;
  for (int turn = 0; turn < 10; ++turn) EXPECT_EQ(rig.pick(request).reason, abi::Reason::kTie);
}

TEST(SessionAffinity, TellsManySessionsApart) {
  PickRig rig(sessions());
  rig.add_endpoints(16);
  std::map<std::string, std::string> first;
  for (int session = 0; session < 4000; ++session) {
    const std::string id = std::to_string(session);
    first[id] = rig.served(of_session(rig, id));
  }
  int stayed = 0;
  for (const auto& [id, endpoint] : first) {
    auto request = of_session(rig, id);
    request.dry_run = true;
    stayed += rig.name(rig.pick(request)) == endpoint ? 1 : 0;
  }
  EXPECT_EQ(stayed, 4000) << "65,536 places hold 4,000 sessions";
}

}  // namespace
}  // namespace pickd::pick::test

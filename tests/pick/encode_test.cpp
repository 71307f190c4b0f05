// The encode stage: requests with images go to who encodes first, then to who prefills and decodes.
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

config::SchedulingConfig stages() {
  auto loaded = config::load_config("", {"PICKD_SCHEDULING_CONFIG_FILE=" PICKD_SOURCE_DIR
                                         "/tests/pick/data/encode-prefill-decode.yaml"});
  if (!loaded) throw std::runtime_error(loaded.error().text);
  return loaded->config.scheduling;
}

class EncodeStage : public ::testing::Test {
 protected:
  EncodeStage() : rig_(options()) {
    for (const auto& [name, role] : {std::pair{"d1", abi::Role::kDecode},
                                     {"d2", abi::Role::kDecode},
                                     {"p1", abi::Role::kPrefill},
                                     {"v1", abi::Role::kEncode},
                                     {"v2", abi::Role::kEncode}}) {
      auto spec = rig_.spec(name);
      spec.role = role;
      rig_.add(spec);
    }
    rig_.tick += 10;
  }
  static RigOptions options() {
    RigOptions made;
    made.scheduling = stages();
    return made;
  }
  PickRequest with_image(std::span<const std::uint64_t> keys) {
    PickRequest request = rig_.request(keys);
    request.multimodal = true;
    return request;
  }

  PickRig rig_;
};

TEST_F(EncodeStage, GivesAllThreeInOnePickAndReservesEach) {
  const auto keys = chain(1, 20);
  const auto request = with_image(keys);
  const PickResult result = rig_.pick(request);
  ASSERT_EQ(result.status, 0);
  ASSERT_TRUE(result.has_encode);
  ASSERT_TRUE(result.has_prefill);
  const std::string encode = result.encode.endpoint->name;
  EXPECT_EQ(rig_.name(result)[0], 'd');
  EXPECT_EQ(result.prefill.endpoint->name, "p1");
  EXPECT_EQ(encode[0], 'v');
  EXPECT_EQ(rig_.inflight(encode), 1U);
  EXPECT_EQ(rig_.inflight_tokens(encode), 0U) << "it computes no prompt";
  EXPECT_EQ(rig_.inflight_tokens("p1"), 1280U);
  EXPECT_EQ(rig_.counted(abi::Counter::picks_encode), 1U);
  EXPECT_EQ(rig_.counted(abi::Counter::picks_split), 1U);
  // The first token ends what stands before the decode.
  rig_.reservations().first_token(request.ticket, PickRig::kUid);
  EXPECT_EQ(rig_.inflight(encode), 0U);
  EXPECT_EQ(rig_.inflight("p1"), 0U);
  EXPECT_EQ(rig_.inflight(rig_.name(result)), 1U);
  rig_.reservations().end(request.ticket, PickRig::kUid);
  for (const char* name : {"d1", "d2", "p1", "v1", "v2"})
    EXPECT_EQ(rig_.inflight(name), 0U) << name;
}

TEST_F(EncodeStage, IsLeftOutForTextAlone) {
  const auto keys = chain(1, 20);
  const PickResult result = rig_.pick(rig_.request(keys));
  EXPECT_FALSE(result.has_encode);
  EXPECT_TRUE(result.has_prefill);
  EXPECT_EQ(rig_.inflight("v1") + rig_.inflight("v2"), 0U);
}

TEST_F(EncodeStage, ComesWithoutPrefillForAShortPrompt) {
  const auto keys = chain(1, 3);
  const PickResult result = rig_.pick(with_image(keys));
  EXPECT_TRUE(result.has_encode);
  EXPECT_FALSE(result.has_prefill);
  EXPECT_EQ(rig_.inflight_tokens(rig_.name(result)), 192U);
}

TEST_F(EncodeStage, IsDoneByTheOthersWhereNobodyEncodes) {
  for (const char* name : {"v1", "v2"}) rig_.set_state(name, abi::EndpointState::kDraining);
  const auto keys = chain(1, 20);
  const PickResult result = rig_.pick(with_image(keys));
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(result.has_encode);
  EXPECT_TRUE(result.has_prefill);
}

TEST_F(EncodeStage, SpreadsABurst) {
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 100; ++prompt) {
    const auto keys = chain(prompt, 3);
    ++tally[rig_.pick(with_image(keys)).encode.endpoint->name];
  }
  EXPECT_EQ(tally["v1"], 50U);
  EXPECT_EQ(tally["v2"], 50U);
}

TEST_F(EncodeStage, StampsNoBlocksWhereNoPromptIsComputed) {
  const auto keys = chain(1, 20);
  const PickResult result = rig_.pick(with_image(keys));
  EXPECT_EQ(rig_.counted(abi::Counter::stamped_blocks), 40U) << "of who prefills and who decodes";
  EXPECT_EQ(result.encode.match_blocks, 0U);
}

TEST_F(EncodeStage, LeavesRoomForEveryStageAmongEightEndpoints) {
  for (int at = 3; at < 12; ++at) {
    auto spec = rig_.spec("d" + std::to_string(at));
    spec.role = abi::Role::kDecode;
    rig_.add(spec);
  }
  rig_.tick += 10;
  const auto keys = chain(1, 20);
  const PickResult result = rig_.pick(with_image(keys));
  ASSERT_TRUE(result.has_encode && result.has_prefill);
  EXPECT_EQ(result.count, 6U);
}

TEST(EncodeFiles, WithoutTheProfileOfAStageSayWhichIsMissing) {
  config::SchedulingConfig without = stages();
  std::erase_if(without.profiles,
                [](const config::ProfileConfig& profile) { return profile.name == "encode"; });
  const auto made = Schedule::make(without);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text.find("needs a profile `encode` (profiles.encode)"), std::string::npos)
      << made.error().text;
}

}  // namespace
}  // namespace pickd::pick::test

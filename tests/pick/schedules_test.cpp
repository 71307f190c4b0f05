// Schedules: files as operators write them, handlers, admission by priority, and a new schedule
// while picks are under way.
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

config::SchedulingConfig loaded(const std::string& path) {
  auto read = config::load_config("", {"PICKD_SCHEDULING_CONFIG_FILE=" + path});
  if (!read) throw std::runtime_error(read.error().text);
  return read->config.scheduling;
}
config::SchedulingConfig data(const std::string& name) {
  return loaded(std::string(PICKD_SOURCE_DIR) + "/tests/pick/data/" + name);
}

// Of a file with this text: what is wrong with it.
std::string error_of(const std::string& text) {
  char path[] = "/tmp/pickd-schedule-XXXXXX";
  const int file = ::mkstemp(path);
  EXPECT_GE(file, 0);
  ::close(file);
  std::ofstream(path) << text;
  const auto read = config::load_config("", {std::string("PICKD_SCHEDULING_CONFIG_FILE=") + path});
  ::unlink(path);
  if (!read) return read.error().text;
  const auto made = Schedule::make(read.value().config.scheduling);
  return made ? "" : made.error().text;
}
constexpr const char* kHead = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";

RigOptions of(config::SchedulingConfig scheduling) {
  RigOptions options;
  options.scheduling = std::move(scheduling);
  return options;
}

void add_role(PickRig& rig, const std::string& name, const std::string& role,
              const std::string& host = "") {
  auto spec = rig.spec(name);
  spec.labels = {{"llm-d.ai/role", role}};
  if (!host.empty()) spec.labels.emplace_back("kubernetes.io/hostname", host);
  rig.add(spec);
}

TEST(EppFiles, LoadUnchanged) {
  for (const char* name : {"optimized-baseline.yaml", "sticky-until-saturated.yaml",
                           "prefill-decode.yaml", "predicted-latency.yaml"}) {
    const auto made = Schedule::make(data(name));
    ASSERT_TRUE(made) << name << ": " << made.error().text;
  }
}

TEST(EppFiles, SetWhatTheySay) {
  auto baseline = Schedule::make(data("optimized-baseline.yaml"));
  ASSERT_TRUE(baseline);
  EXPECT_EQ((*baseline)->sources().prefix_tokens_max, 256U * 64);
  EXPECT_EQ((*baseline)->sources().capacity_tokens, 31'250U * 64);
  auto sticky = Schedule::make(data("sticky-until-saturated.yaml"));
  ASSERT_TRUE(sticky);
  EXPECT_EQ((*sticky)->sources().output_ratio, 0.5);
  EXPECT_EQ((*sticky)->sources().output_tokens_max, 4096U);
  EXPECT_FALSE((*sticky)->sources().capacity_tokens.has_value());
  auto predicted = Schedule::make(data("predicted-latency.yaml"));
  ASSERT_TRUE(predicted);
  EXPECT_EQ((*predicted)->sources().slo_buffer, 0.9);
  EXPECT_EQ((*predicted)->admitters().size(), 1U);
}

// Of files from before the producer had a name of its own.
TEST(EppFiles, TakeTheOlderParametersOfThePrefixCacheScorer) {
  const auto sources = [](const std::vector<Use>& uses) {
    auto made = Schedule::make(scheduling(uses));
    EXPECT_TRUE(made) << made.error().text;
    return made ? (*made)->sources() : SourceSettings{};
  };
  const std::string older =
      "{autoTune: false, blockSize: 64, maxPrefixBlocksToMatch: 256, lruCapacityPerServer: 31250}";
  SourceSettings said = sources({{"prefix-cache-scorer", 3.0, older}});
  EXPECT_EQ(said.prefix_tokens_max, 256U * 64);
  EXPECT_EQ(said.capacity_tokens, 31'250U * 64);
  said = sources({{"prefix-cache-scorer", 3.0, "{autoTune: true, lruCapacityPerServer: 31250}"}});
  EXPECT_EQ(said.prefix_tokens_max, 0U);
  EXPECT_FALSE(said.capacity_tokens.has_value());
}

TEST(EppFiles, LetTheProducerWinOverTheOlderParametersOfTheScorer) {
  const std::string older = "{autoTune: false, maxPrefixBlocksToMatch: 256}";
  const std::string newer =
      "{autoTune: false, maxPrefixTokensToMatch: 1024, lruCapacityPerServer: 10}";
  for (const bool producer_first : {false, true}) {
    auto config = scheduling({{"prefix-cache-scorer", 3.0, older},
                              {"approx-prefix-cache-producer", std::nullopt, newer}});
    config.profiles[0].plugins.pop_back();  // it stands beside the profiles
    if (producer_first) std::swap(config.plugins[0], config.plugins[1]);
    auto made = Schedule::make(config);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ((*made)->sources().prefix_tokens_max, 1024U) << producer_first;
    EXPECT_EQ((*made)->sources().capacity_tokens, 10U * 64) << producer_first;
  }
}

TEST(EppFiles, BoundWhatIsRememberedAsWellAsWhatIsMatched) {
  PickRig rig(of(data("optimized-baseline.yaml")));
  rig.add_endpoints(2);
  const auto keys = chain(1, 300);
  rig.pick(rig.request(keys));
  EXPECT_EQ(rig.counted(abi::Counter::stamped_blocks), 256U);
  EXPECT_EQ(rig.pick_only(rig.request(keys)).endpoints[0].match_blocks, 256U);
}

TEST(EppFiles, ErrorsNamePlaceAndRemedy) {
  EXPECT_NE(error_of(std::string(kHead) + "plugins:\n- type: openai-parser\n")
                .find("pickd has no plugin `openai-parser`"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kHead) + "plugins: [{type: queue-scorer}]\n"
                                          "saturationDetector: {pluginRef: queue-scorer}\n")
                .find("`queue-scorer` is a scorer; utilization-detector and concurrency-detector"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kHead) + "plugins: [{type: queue-scorer}]\n"
                                          "schedulingProfiles: [{name: a}, {name: b}]\n")
                .find("nothing that chooses; add a header-profile-handler"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kHead) +
                     "plugins: [{type: disagg-profile-handler, parameters: {deciders: "
                     "{prefill: queue-scorer}}}, {type: queue-scorer}]\n"
                     "schedulingProfiles: [{name: decode}, {name: prefill}]\n")
                .find("`queue-scorer` is no decider"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kHead) +
                     "plugins: [{type: single-profile-handler}, {type: header-profile-handler}]\n"
                     "schedulingProfiles: [{name: decode}]\n")
                .find("a second profile handler"),
            std::string::npos);
}

TEST(EppFiles, OlderFilesGiveTheDetectorsThresholdsInPlace) {
  EXPECT_EQ(error_of(std::string(kHead) + "plugins: [{type: queue-scorer}]\nsaturationDetector: "
                                          "{queueDepthThreshold: 7, kvCacheUtilThreshold: 0.5}\n"),
            "");
  EXPECT_NE(error_of(std::string(kHead) + "plugins: [{type: queue-scorer}]\nsaturationDetector: "
                                          "{queueDepth: 7}\n")
                .find("queueDepth: unknown key"),
            std::string::npos);
}

TEST(EppFiles, OfTenThousandPluginsAreRefused) {
  std::string text = std::string(kHead) + "plugins:\n";
  for (int at = 0; at < 10'000; ++at)
    text += "- {type: queue-scorer, name: q" + std::to_string(at) + "}\n";
  EXPECT_NE(error_of(text).find("plugins: must have at most 128 entries, has 10000"),
            std::string::npos);
}

TEST(EppFiles, ThatExpandWithoutEndAreRefused) {
  std::string text = std::string(kHead) + "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int at = 1; at < 12; ++at) {
    const std::string before = "*a" + std::to_string(at - 1);
    text += "a" + std::to_string(at) + ": &a" + std::to_string(at) + " [";
    for (int i = 0; i < 9; ++i) text += (i == 0 ? "" : ", ") + before;
    text += "]\n";
  }
  EXPECT_NE(error_of(text).find("aliases counted as what they stand for"), std::string::npos);
}

// Cut anywhere, a file is refused or a whole one of fewer lines, and never more than that.
TEST(EppFiles, CutAnywhereDoNoHarm) {
  std::ifstream file(std::string(PICKD_SOURCE_DIR) + "/tests/pick/data/prefill-decode.yaml");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(text.empty());
  int refused = 0;
  for (std::size_t bytes = 0; bytes < text.size(); bytes += 7)
    refused += error_of(text.substr(0, bytes)).empty() ? 0 : 1;
  EXPECT_GT(refused, 0);
  EXPECT_EQ(error_of(text), "");
}

TEST(HeaderProfileHandler, RunsTheProfileThatTheRequestNames) {
  auto scheduling =
      test::scheduling({{"header-profile-handler"}, {"decode-filter"}, {"prefill-filter"}});
  scheduling.profiles = {{"decode", {{"decode-filter", {}, {}}}, {}},
                         {"prefill", {{"prefill-filter", {}, {}}}, {}}};
  PickRig rig(of(scheduling));
  add_role(rig, "d", "decode");
  add_role(rig, "p", "prefill");
  EXPECT_EQ(rig.winner(rig.request()), "d") << "the default";
  const auto with = [&](std::string_view value) {
    static Attribute attribute;
    attribute = {"epp-profile", value};
    auto request = rig.request();
    request.attributes = {&attribute, 1};
    return rig.winner(request);
  };
  EXPECT_EQ(with("prefill"), "p");
  EXPECT_EQ(with("decode"), "d");
  EXPECT_EQ(with(""), "d");
  EXPECT_EQ(with("encode"), "status " + std::to_string(-EINVAL));
  EXPECT_EQ(rig.counted(abi::Counter::picks_no_profile), 1U);
}

class Disagg : public ::testing::Test {
 protected:
  Disagg() : rig_(of(data("prefill-decode.yaml"))) {
    add_role(rig_, "d1", "decode", "h1");
    add_role(rig_, "d2", "decode", "h2");
    add_role(rig_, "p1", "prefill", "h1");
    add_role(rig_, "p2", "prefill", "h2");
    rig_.tick += 10;
  }
  PickRig rig_;
};

TEST_F(Disagg, PicksAndReservesAndStampsBothForALongUncachedPrompt) {
  const auto keys = chain(1, 20);
  const auto request = rig_.request(keys);
  const PickResult result = rig_.pick(request);
  ASSERT_EQ(result.status, 0);
  ASSERT_TRUE(result.has_prefill);
  const std::string decode = rig_.name(result);
  const std::string prefill = result.prefill.endpoint->name;
  EXPECT_EQ(decode[0], 'd');
  EXPECT_EQ(prefill, decode == "d1" ? "p1" : "p2") << "on the same host";
  EXPECT_EQ(rig_.inflight(decode), 1U);
  EXPECT_EQ(rig_.inflight_tokens(decode), 0U);
  EXPECT_EQ(rig_.inflight(prefill), 1U);
  EXPECT_EQ(rig_.inflight_tokens(prefill), 1280U);
  EXPECT_EQ(rig_.counted(abi::Counter::picks_split), 1U);
  // The first token ends the prefill endpoint's part, the end the rest.
  rig_.reservations().first_token(request.ticket, PickRig::kUid);
  EXPECT_EQ(rig_.inflight(prefill), 0U);
  EXPECT_EQ(rig_.inflight_tokens(prefill), 0U);
  EXPECT_EQ(rig_.inflight(decode), 1U);
  rig_.reservations().end(request.ticket, PickRig::kUid);
  EXPECT_EQ(rig_.inflight(decode), 0U);
  // Both hold it now: the next turn lacks little, and stays whole.
  const auto next = chain(2, 3, keys);
  const PickResult second = rig_.pick(rig_.request(next));
  EXPECT_EQ(rig_.name(second), decode);
  EXPECT_EQ(second.endpoints[0].match_blocks, 20U);
  EXPECT_FALSE(second.has_prefill) << "192 uncached tokens are fewer than 512";
  EXPECT_EQ(rig_.inflight(prefill), 0U);
}

TEST_F(Disagg, GivesBackBothWhenTheRequestEndsBeforeAToken) {
  const auto keys = chain(1, 20);
  const auto request = rig_.request(keys);
  ASSERT_TRUE(rig_.pick(request).has_prefill);
  rig_.reservations().end(request.ticket, PickRig::kUid);
  for (const char* name : {"d1", "d2", "p1", "p2"}) {
    EXPECT_EQ(rig_.inflight(name), 0U) << name;
    EXPECT_EQ(rig_.inflight_tokens(name), 0U) << name;
  }
}

TEST_F(Disagg, DecodesAloneWhenNobodyCanPrefill) {
  for (const char* name : {"p1", "p2"}) rig_.set_state(name, abi::EndpointState::kDraining);
  const auto keys = chain(1, 20);
  const PickResult result = rig_.pick(rig_.request(keys));
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(result.has_prefill);
  EXPECT_EQ(rig_.inflight_tokens(rig_.name(result)), 1280U);
}

TEST_F(Disagg, FailsWhenNobodyDecodes) {
  for (const char* name : {"d1", "d2"}) rig_.set_state(name, abi::EndpointState::kDraining);
  EXPECT_EQ(rig_.pick(rig_.request(chain(1, 20))).status, -EBUSY);
}

// Field case: 100 prompts at once, before any stream begins, over the prefill endpoints.
TEST_F(Disagg, SpreadsPrefillOfABurst) {
  Tally tally;
  for (std::uint64_t prompt = 0; prompt < 100; ++prompt) {
    const auto keys = chain(prompt, 30);
    const PickResult result = rig_.pick(rig_.request(keys));
    ASSERT_TRUE(result.has_prefill);
    ++tally[result.prefill.endpoint->name];
  }
  EXPECT_EQ(tally.size(), 2U);
}

PickRequest sheddable(PickRig& rig, int priority = -1) {
  auto request = rig.request();
  request.priority = static_cast<std::int16_t>(priority);
  return request;
}

// mean of max(queue / 5, kv / 0.8) >= 1
TEST(Admission, ShedsNegativePriorityWhenQueuesAreFullOnAverage) {
  PickRig rig;
  rig.add_endpoints(2);
  rig.record("e1").waiting.store(10);
  rig.record("e2").kv_use_ppm.store(160'000);  // 2 and 0.2: 1.1 on average
  EXPECT_EQ(rig.pick(sheddable(rig)).status, -EBUSY);
  EXPECT_EQ(rig.counted(abi::Counter::picks_shed_priority), 1U);
  EXPECT_EQ(rig.pick(sheddable(rig, 0)).status, 0) << "the ordinary one always passes";
  rig.record("e1").waiting.store(8);
  EXPECT_EQ(rig.pick(sheddable(rig)).status, 0);
}

TEST(Admission, DoesNotTakeTheUnknownForFull) {
  PickRig rig;
  rig.add_endpoints(3);
  EXPECT_EQ(rig.pick(sheddable(rig)).status, 0) << "nobody told anything";
  rig.record("e1").waiting.store(5);
  EXPECT_EQ(rig.pick(sheddable(rig)).status, -EBUSY) << "all that is known is full";
}

// sum in flight / (32 x endpoints)
TEST(Admission, GoesByOwnCountsWithTheConcurrencyDetector) {
  PickRig rig(of(data("sticky-until-saturated.yaml")));
  rig.add_endpoints(2);
  rig.set_load("e1", 40, 0);
  rig.set_load("e2", 23, 0);
  EXPECT_EQ(rig.pick(sheddable(rig)).status, 0) << "63 of 64, 64 with this one";
  EXPECT_EQ(rig.pick(sheddable(rig)).status, -EBUSY);
}

TEST(InflightLoad, CountsOutputToComeWhenToldTo) {
  PickRig rig(of(data("sticky-until-saturated.yaml")));
  rig.add_endpoints(1);
  rig.pick(rig.request({}, 1000));  // half of the prompt
  EXPECT_EQ(rig.inflight_tokens("e1"), 1500U);
  auto expecting = rig.request({}, 1000);
  expecting.expected_output_tokens = 10'000;  // at most 4,096
  rig.pick(expecting);
  EXPECT_EQ(rig.inflight_tokens("e1"), 1500U + 5096);
}

TEST(Schedules, AreReplacedBetweenPicksAndStayForWhoPicked) {
  PickRig rig(of(scheduling({{"active-request-scorer"}})));
  rig.add_endpoints(2);
  rig.set_load("e1", 5, 0);
  const auto request = rig.request();
  const PickResult before = rig.pick_only(request);
  EXPECT_EQ(rig.name(before), "e2");
  rig.core().set_schedule(std::move(*Schedule::make(scheduling({{"active-request-scorer", -1}}))));
  rig.remember(request, before);  // by the schedule that picked
  EXPECT_EQ(rig.winner(rig.request()), "e1");
}

TEST(Schedules, MayBeReplacedWhileOthersPick) {
  PickRig rig;
  rig.add_endpoints(4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 1; thread <= 2; ++thread) {
    threads.emplace_back([&, thread] {
      PickScratch scratch(thread, thread);
      abi::Word row[abi::kCountersMax]{};
      state::Counters counters(row);
      PickResult result;
      PickRequest request;
      request.dry_run = true;
      while (!stop.load()) {
        rig.core().pick(request, rig.topology(), rig.tick, scratch, counters, result);
        ASSERT_EQ(result.status, 0);
        rig.core().remember(request, result, rig.tick, counters);
      }
    });
  }
  const char* const profiles[] = {"least-predicted-cost", "epp-default", "round-robin", "lmetric",
                                  "chwbl"};
  for (int turn = 0; turn < 200; ++turn) {
    config::SchedulingConfig named;
    named.profile = profiles[turn % 5];
    rig.core().set_schedule(std::move(*Schedule::make(named)));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rig.core().schedule().name(), "chwbl");
}

TEST(Schedules, AreTheEndpointPickersWhereNothingIsPredictedUnlessOthersAreNamed) {
  constexpr bool kPredicts = false;
  EXPECT_EQ((*Schedule::make({}, kPredicts))->name(), "epp-default");
  EXPECT_NE((*Schedule::make({}))->name(), "epp-default");
  config::SchedulingConfig named;
  named.profile = "lmetric";
  EXPECT_EQ((*Schedule::make(named, kPredicts))->name(), "lmetric");
  EXPECT_EQ((*Schedule::make(scheduling({{"queue-scorer"}}), kPredicts))->name(), "test");
}

}  // namespace
}  // namespace pickd::pick::test

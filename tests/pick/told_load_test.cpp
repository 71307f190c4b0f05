// What picks make of told load: fresh, stale, of others, of one model.
#include <cmath>

#include "daemon/endpoints/engine_watch.hpp"
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

class ToldLoadPicks : public ::testing::Test {
 protected:
  explicit ToldLoadPicks(const char* profile = "epp-default") {
    RigOptions options;
    options.profile = profile;
    rig = std::make_unique<PickRig>(options);
    rig->add_endpoints(2);
    watch = std::make_unique<endpoints::EngineWatch>(
        rig->endpoint_table(), rig->store(), &rig->record("e1") - 1, endpoints::WatchRules{});
  }
  void tell(const char* name, std::uint32_t waiting, std::uint32_t running,
            std::uint32_t kv_ppm = abi::kUnknown32) {
    endpoints::EngineFacts facts;
    facts.waiting = waiting;
    facts.running = running;
    facts.kv_use_ppm = kv_ppm;
    const std::uint16_t id = rig->topology().find_name(name)->id;
    watch->scrape_sent(id);
    watch->scrape_ok(id, facts, rig->tick);
  }
  Tally picks(int count) {
    Tally tally;
    for (int at = 0; at < count; ++at) ++tally[rig->served(rig->request())];
    return tally;
  }

  std::unique_ptr<PickRig> rig;
  std::unique_ptr<endpoints::EngineWatch> watch;
};

// Field case 20: who stopped reporting keeps its last idle values and draws all traffic.
TEST_F(ToldLoadPicks, AnEndpointThatStoppedReportingRanksBehindThoseThatReport) {
  tell("e1", 0, 0);
  tell("e2", 3, 1);
  EXPECT_EQ(picks(20)["e1"], 20U);
  rig->tick += 1200;
  tell("e2", 3, 1);
  EXPECT_EQ(picks(20)["e2"], 20U);
}

TEST_F(ToldLoadPicks, APoolThatIsAllStaleStillPicksByOwnCounts) {  // Field case 58
  tell("e1", 0, 0);
  tell("e2", 900, 1);
  rig->tick += 1200;
  Tally tally;
  for (int at = 0; at < 20; ++at) ++tally[rig->winner(rig->request())];
  EXPECT_EQ(tally["e1"], 10U);
  EXPECT_EQ(tally["e2"], 10U);
}

TEST_F(ToldLoadPicks, AValueIsKnownUntilItIsStaleAndAScrapeMayBeNewerThanAPick) {
  tell("e1", 0, 0);
  tell("e2", 3, 0);
  rig->tick += 40;
  EXPECT_EQ(picks(20)["e1"], 20U);
  rig->tick -= 42;
  EXPECT_EQ(picks(20)["e1"], 20U);
}

// A gauge at 99 % with nothing there does not starve an endpoint for ever.
TEST_F(ToldLoadPicks, AFrozenGaugeStarvesAnEndpointForSomeSecondsOnly) {
  std::uint32_t frozen_picks = 0;
  for (int scrape = 0; scrape < 30; ++scrape) {
    tell("e1", 0, 0, 990'000);
    tell("e2", 0, 2, 300'000);
    frozen_picks += picks(10)["e1"];
    rig->tick += 20;
    EXPECT_TRUE(scrape >= 8 || frozen_picks == 0) << scrape;
  }
  EXPECT_GT(frozen_picks, 50U);
}

class ForeignLoad : public ToldLoadPicks {
 protected:
  ForeignLoad() : ToldLoadPicks("least-request") {}
};

TEST_F(ForeignLoad, OfOtherGatewaysShowsBesideOurOwn) {
  tell("e1", 2, 8);
  tell("e2", 0, 0);
  EXPECT_EQ(picks(10)["e2"], 10U);
  rig->set_load("e2", 11, 0);
  EXPECT_EQ(picks(10)["e1"], 10U);
}

TEST_F(ForeignLoad, OfOurOwnRequestsIsNotCountedTwice) {
  rig->set_load("e1", 5, 0);
  rig->set_load("e2", 6, 0);
  tell("e1", 1, 4);
  tell("e2", 0, 6);
  EXPECT_EQ(picks(10)["e1"], 10U);
}

TEST_F(ForeignLoad, ThatIsUnknownIsNotIdle) {
  tell("e2", 0, 3);
  rig->set_load("e2", 0, 0);
  Tally tally = picks(60);
  EXPECT_GT(tally["e1"], 10U) << "as many as with the worst of the known: a tie";
  EXPECT_GT(tally["e2"], 10U);
  rig->set_load("e1", 1, 0);
  EXPECT_EQ(picks(10)["e2"], 10U);
}

// Two models on one engine: a request for one must not see the other's queue.
TEST_F(ToldLoadPicks, AQueueIsThatOfTheModelAskedFor) {
  endpoints::EngineFacts facts;
  facts.waiting = 9;
  facts.running = 8;
  facts.models = {{"model-a", 0, 3}, {"model-b", 9, 5}};
  watch->scrape_ok(1, facts, rig->tick);
  tell("e2", 4, 0);
  auto request = rig->request();
  request.model = "model-a";
  EXPECT_EQ(rig->served(request), "e1");
  request = rig->request();
  request.model = "model-b";
  EXPECT_EQ(rig->served(request), "e2");
  EXPECT_EQ(rig->served(rig->request()), "e2") << "no model: the queue of all";
}

}  // namespace
}  // namespace pickd::pick::test

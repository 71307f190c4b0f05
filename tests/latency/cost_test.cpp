// The cost formula with values computed by hand from the specification.
#include "daemon/latency/cost.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pickd::latency {
namespace {

// 1e-4 s a token, 1e-9 s for each unit of attention work, in queue and own; a step of 10 ms and
// 30 us a sequence and 50 ns a KV token.
ClassCoefficients rates() {
  ClassCoefficients of;
  of.ttft = {0, 1, .1, 1, .1, 0, 0};
  of.itl = {.01, 3e-4, .005, 0, 0};
  of.output_tokens = 100;
  return of;
}

TEST(Cost, OfAnIdleEndpointIsPrefillAndOwnDecode) {
  const Prediction p = predict(rates(), {}, 0, {}, 1000, 2000);
  // 1,000 tokens and 1000 * (2000 - 500) = 1.5e6 of work: 0.1 + 0.0015 s.
  EXPECT_NEAR(p.ttft_s, .1015, 1e-6);
  // 0.1 * 100 * (0.01 + 0): nobody else decodes there.
  EXPECT_NEAR(p.cost_s, .1015 + .1, 1e-6);
}

TEST(Cost, CountsTheQueueLessTheProgressOfItsHead) {
  EndpointLoad load;
  load.queued_requests = 2;
  load.queued_tokens = 5000;
  load.queued_work = 1e7;
  load.head_tokens = 3000;
  load.head_work = 0;
  load.head_age_s = .2;
  // Queue 0.5 + 0.01 s, of which the head has done 0.2 of its 0.3 s.
  Prediction p = predict(rates(), {}, 0, load, 0, 1000);
  EXPECT_NEAR(p.ttft_s, .31, 1e-6);
  EXPECT_NEAR(p.progress_s, .2, 1e-6);
  load.head_age_s = 1.5;  // no more is credited than the head's own work
  p = predict(rates(), {}, 0, load, 0, 1000);
  EXPECT_NEAR(p.ttft_s, .21, 1e-6);
}

TEST(Cost, OfASilentEndpointGrowsWithItsSilence) {
  EndpointLoad load;
  load.queued_requests = 3;
  load.queued_tokens = load.head_tokens = 1000;
  load.head_age_s = 11.3F;  // 10 s more than 3 * 0.1 + 1
  const Prediction p = predict(rates(), {}, 0, load, 0, 1000);
  EXPECT_NEAR(p.ttft_s, 10, 1e-5);
}

TEST(Cost, TakesOneRequestWithoutAFirstTokenForALateReport) {
  EndpointLoad load;
  load.queued_requests = 2;
  load.queued_tokens = load.head_tokens = 1000;
  load.head_age_s = 11.3F;
  EXPECT_NEAR(predict(rates(), {}, 0, load, 0, 1000).ttft_s, 0, 1e-6);
}

// Work there holds up nobody: its price is that of an endpoint where nobody waits.
TEST(Cost, PutsNoPriceOnWorkForARequestWhoseFirstTokenIsOverdue) {
  EndpointLoad load;
  load.queued_requests = 1;
  load.queued_tokens = load.head_tokens = 1000;
  const auto price = [&load](float age_s) {
    load.head_age_s = age_s;
    return predict(rates(), {}, 1, load, 1000, 1000).cost_s -
           predict(rates(), {}, 0, load, 1000, 1000).cost_s;
  };
  const auto followers = [&load](float age_s) {
    load.head_age_s = age_s;
    EndpointLoad nobody = load;
    nobody.queued_requests = 0;
    return predict(rates(), {}, 1, load, 1000, 1000).cost_s -
           predict(rates(), {}, 1, nobody, 1000, 1000).cost_s;
  };
  EXPECT_GT(followers(.1F), .05);
  EXPECT_NEAR(followers(.75F), 0, 1e-6) << "0.7 s: twice its work and half a second";
  EXPECT_GT(price(.75F), .05) << "steady load keeps its price";
}

TEST(Cost, GrowsWithTheSlownessOfTheEndpoint) {
  EndpointCoefficients slow;
  slow.slowness = 2;
  EXPECT_NEAR(predict(rates(), slow, 0, {}, 1000, 1000).ttft_s, 2 * .1005, 1e-6);
}

TEST(Cost, PutsAPriceOnWorkThatTheSlownessDoesNotRaise) {
  EndpointCoefficients slow;
  slow.slowness = 2;
  const double without = predict(rates(), slow, 0, {}, 1000, 1000).cost_s;
  // kappa/m of work that is m times as long: kappa times the class's work.
  EXPECT_NEAR(predict(rates(), slow, 3, {}, 1000, 1000).cost_s - without, 3 * .1005, 1e-6);
}

TEST(Cost, CountsTheSlowDownOfThoseThatDecodeThere) {
  EndpointLoad load;
  load.running = 10;
  load.kv_tokens = 20'000;
  const Prediction p = predict(rates(), {}, 0, load, 0, 1000);
  // step 0.01 + 10 * 3e-5 + 20000 * 5e-8 = 0.0113; others 10 * (3e-5 + 5e-5) = 8e-4.
  EXPECT_NEAR(p.cost_s, .1 * 100 * (.0113 + 8e-4), 1e-6);
  EndpointCoefficients busy;
  busy.queued_share = .5;
  EXPECT_NEAR(predict(rates(), busy, 0, load, 0, 1000).cost_s, 10 * (.0226 + 8e-4), 1e-6);
  busy.queued_share = 1;  // at most 0.9
  EXPECT_NEAR(predict(rates(), busy, 0, load, 0, 1000).cost_s, 10 * (.113 + 8e-4), 1e-6);
}

TEST(Cost, PutsAPriceOnWorkForEachRequestThatWaitsThere) {
  EndpointLoad load;
  load.queued_requests = 3;  // as good as done: they wait for no tokens
  const double alone = predict(rates(), {}, 0, {}, 1000, 1000).cost_s;
  EXPECT_NEAR(predict(rates(), {}, 0, load, 1000, 1000).cost_s - alone, 3 * .1005, 1e-6);
  load.queued_requests = 100;  // at most 10
  EXPECT_NEAR(predict(rates(), {}, 0, load, 1000, 1000).cost_s - alone, 10 * .1005, 1e-6);
}

TEST(Cost, IsTheSameOfManyEndpointsSideBySideAsOfEachAlone) {
  CostLanes lanes;
  PredictionLanes side_by_side;
  std::vector<Prediction> alone;
  for (std::size_t at = 0; at < 23; ++at) {
    const auto scale = static_cast<float>(at);
    EndpointLoad load;
    load.queued_tokens = 700 * scale;
    load.queued_work = 1e6F * scale;
    load.queued_requests = scale;
    load.running = 2 * scale;
    load.kv_tokens = 5000 * scale;
    load.head_tokens = 300 * scale;
    load.head_age_s = .3F * scale;
    const EndpointCoefficients endpoint{1 + scale / 10, scale / 23, 0};
    lanes.add(load, endpoint, 100 * scale);
    alone.push_back(predict(rates(), endpoint, 1.5, load, 100 * at, 4000));
  }
  predict(rates(), 1.5, lanes, 4000, side_by_side);
  for (std::size_t at = 0; at < alone.size(); ++at) {
    EXPECT_FLOAT_EQ(side_by_side.ttft_s[at], static_cast<float>(alone[at].ttft_s));
    EXPECT_FLOAT_EQ(side_by_side.itl_s[at], static_cast<float>(alone[at].itl_s));
    EXPECT_FLOAT_EQ(side_by_side.cost_s[at], static_cast<float>(alone[at].cost_s));
  }
}

TEST(Cost, TakesOthersRequestsForAsLargeAsOursAreOnAverage) {
  EndpointLoad load;
  add_foreign(load, 2, 3, {1000, 5e5, 2000});
  EXPECT_FLOAT_EQ(load.queued_tokens, 2000);
  EXPECT_FLOAT_EQ(load.queued_work, 1e6);
  EXPECT_FLOAT_EQ(load.running, 5);
  EXPECT_FLOAT_EQ(load.decoding(), 3);
  EXPECT_FLOAT_EQ(load.kv_tokens, 10'000);
  EXPECT_FLOAT_EQ(load.decoding_tokens(), 6000);
}

TEST(WorkPrice, RisesWithTheShareOfEndpointsThatHaveAQueue) {
  EXPECT_DOUBLE_EQ(work_price(0), 0);
  EXPECT_DOUBLE_EQ(work_price(.5), 2);
  EXPECT_NEAR(work_price(.8), 8, 1e-9);
  EXPECT_DOUBLE_EQ(work_price(1), 8);  // 2 * min(4, 19)
}

}  // namespace
}  // namespace pickd::latency

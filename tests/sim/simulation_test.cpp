// The simulator: what must hold of any policy, and the traps that made others' wrong.
#include "tools/sim/simulation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tools/sim/chart.hpp"
#include "tools/sim/figures.hpp"

namespace pickd::sim {
namespace {

Workload workload(const std::string& name, double seconds, std::uint64_t seed = 1) {
  return make_workload({.name = name, .seconds = seconds, .seed = seed});
}

Figures figures(const Workload& of, const SimOptions& options) {
  return figures_of(simulate(of, options));
}

TEST(Workloads, AreTheSameForTheSameSeed) {
  for (const GeneratorInfo& generator : generators()) {
    const Workload one = workload(std::string(generator.name), 60);
    const Workload two = workload(std::string(generator.name), 60);
    const Workload other = workload(std::string(generator.name), 60, 2);
    ASSERT_EQ(one.requests.size(), two.requests.size()) << generator.name;
    bool differs = one.requests.size() != other.requests.size();
    for (std::size_t at = 0; at < one.requests.size(); ++at) {
      ASSERT_EQ(one.requests[at].blocks, two.requests[at].blocks);
      ASSERT_EQ(one.requests[at].arrival_s, two.requests[at].arrival_s);
      ASSERT_GE(one.requests[at].prompt_tokens, 1U);
      ASSERT_GE(one.requests[at].output_tokens, 1U);
      ASSERT_GE(one.requests[at].blocks.size() * kBlockTokens, one.requests[at].prompt_tokens);
      differs = differs || one.requests[at].prompt_tokens != other.requests[at].prompt_tokens;
    }
    EXPECT_TRUE(differs) << generator.name;
  }
}

TEST(Workloads, SayWhatWouldBeRight) {
  try {
    workload("nonsense", 60);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("hot-prefix"), std::string::npos) << error.what();
  }
}

TEST(Workloads, ShareNoBlockWhenUnrelated) {
  EXPECT_EQ(workload("unrelated", 120).bound_hit_rate, 0);
  EXPECT_GT(workload("chat", 120).bound_hit_rate, .5);
}

TEST(Simulation, GivesTheSameForTheSameSeed) {
  const Workload chat = workload("chat", 60);
  const SimOptions options{.step_noise = .1, .report_noise = .1};
  const Figures one = figures(chat, options);
  const Figures two = figures(chat, options);
  EXPECT_EQ(one.ttft_mean_s, two.ttft_mean_s);
  EXPECT_EQ(one.hit_rate, two.hit_rate);
}

TEST(Simulation, ServesEveryRequestOnceAndHitsNoMoreThanTheBound) {
  for (const GeneratorInfo& generator : generators()) {
    const Workload of = workload(std::string(generator.name), 60);
    for (const char* policy : {"least-predicted-cost", "epp-default", "round-robin"}) {
      const SimOutcome outcome = simulate(of, {.policy = policy});
      EXPECT_EQ(outcome.requests.size() + outcome.failed, of.requests.size()) << generator.name;
      EXPECT_EQ(outcome.failed, 0U);
      EXPECT_LE(outcome.hit_rate, of.bound_hit_rate + 1e-9) << generator.name << " " << policy;
    }
  }
}

TEST(Simulation, ReachesTheBoundWithOneEngineThatForgetsNothing) {
  const Workload chat = workload("chat", 120);
  const SimOptions options{.policy = "round-robin",
                           .endpoints = 1,
                           .capacity_blocks = 200'000,
                           .rates = {.step_s = 1e-5, .prefill_s = 1e-8, .attention_s = 0}};
  // Quick steps, so that a turn is over before the next one comes. What is computed always, the
  // last block of a prompt, is the only loss.
  EXPECT_GT(figures(chat, options).hit_rate, chat.bound_hit_rate - .02);
}

TEST(Simulation, ShowsWhatRoutersWithoutASharedIndexLose) {
  const Workload chat = workload("chat", 240);
  const Figures one = figures(chat, {.gateways = 1});
  const Figures eight = figures(chat, {.gateways = 8});
  EXPECT_LT(eight.hit_rate, one.hit_rate - .02);
  EXPECT_GT(eight.ttft_mean_s, one.ttft_mean_s);
}

TEST(Simulation, ShowsWhatOldScrapesDoToAPolicyThatTrustsThem) {
  const Workload unrelated = workload("unrelated", 240);
  const Figures fresh = figures(unrelated, {.policy = "epp-default", .scrape_s = .05});
  const Figures stale = figures(unrelated, {.policy = "epp-default", .scrape_s = 5});
  EXPECT_GT(stale.ttft_mean_s, 1.3 * fresh.ttft_mean_s);
  // Own counts need no scrape.
  const Figures own = figures(unrelated, {.scrape_s = .05});
  const Figures own_stale = figures(unrelated, {.scrape_s = 5});
  EXPECT_EQ(own.ttft_mean_s, own_stale.ttft_mean_s);
}

TEST(Simulation, LosesACacheWithARestart) {
  const Workload chat = workload("chat", 240);
  SimOptions options;
  const Figures calm = figures(chat, options);
  for (std::uint32_t at = 0; at < 8; ++at) options.restarts.push_back({at, 20.0 + 25 * at});
  const SimOutcome restarted = simulate(chat, options);
  EXPECT_LT(restarted.hit_rate, calm.hit_rate);
  EXPECT_EQ(restarted.requests.size() + restarted.failed, chat.requests.size());
}

TEST(LeastPredictedCost, HasNoHigherMeanTtftThanTheWeightsOnAnyGenerator) {
  for (const GeneratorInfo& generator : generators()) {
    const Workload of = workload(std::string(generator.name), 240);
    const SimOptions own{.step_noise = .1, .report_noise = .1};
    SimOptions weights = own;
    weights.policy = "epp-default";
    EXPECT_LT(figures(of, own).ttft_mean_s, 1.06 * figures(of, weights).ttft_mean_s)
        << generator.name;
  }
}

TEST(LeastPredictedCost, PredictsTtftWithin15PercentUnderNoise) {
  const SimOptions options{.step_noise = .1, .report_noise = .1};
  EXPECT_LT(figures(workload("chat", 300), options).ttft_mape, .15);
}

TEST(LeastPredictedCost, PredictsItlWithin10PercentGivenWhatRan) {
  const SimOptions options{.step_noise = .1, .report_noise = .1};
  EXPECT_LT(figures(workload("chat", 300), options).itl_given_mape, .05);
  EXPECT_LT(figures(workload("unrelated", 300), options).itl_given_mape, .05);
  EXPECT_LT(figures(workload("mixed-slo", 300), options).itl_given_mape, .1);
}

// Every request shares its first blocks: who sticks to any match gathers all on one endpoint.
TEST(LeastPredictedCost, DoesNotGatherRequestsThatShareOnlyTheirBeginning) {
  EXPECT_LT(figures(workload("rag", 300), {}).busiest_share, .2);
}

TEST(LeastPredictedCost, SendsLessToEnginesOfHalfTheSpeed) {
  const Workload of = workload("unrelated", 240);
  const SimOutcome outcome = simulate(of, {.slow_share = .5});
  // Of the tokens: short requests may well go to slow engines.
  double slow = 0;
  double all = 0;
  for (const Prefilled& served : outcome.requests) {
    all += served.prompt_tokens;
    if (served.endpoint < 4) slow += served.prompt_tokens;
  }
  const double share = slow / all;
  EXPECT_LT(share, .45);
  EXPECT_GT(share, .1);
}

// Mean TTFT of three seeds: one alone moves by more than the reports move it.
TEST(LeastPredictedCost, StandsLostAndLateReports) {
  for (const char* name : {"chat", "unrelated"}) {
    double calm_s = 0;
    double lossy_s = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Workload of = workload(name, 300, seed);
      SimOptions options{.step_noise = .1, .report_noise = .1, .seed = seed};
      calm_s += figures(of, options).ttft_mean_s;
      options.reports_lost_share = .01;
      options.reports_late_share = .05;
      lossy_s += figures(of, options).ttft_mean_s;
    }
    EXPECT_LT(lossy_s, 1.05 * calm_s) << name;
  }
}

// Sixteen answers to each prompt at once: all but the first are the last block of a prompt that is
// cached whole, and those make the queue.
TEST(LeastPredictedCost, PredictsTtftInBatchesOfEqualPrompts) {
  EXPECT_LT(figures(workload("rl", 300), {.step_noise = .1, .report_noise = .1}).ttft_mape, .15);
}

TEST(Bounds, OfTtftIsThatOfAnIdleEngineThatForgetsNothing) {
  const enginesim::StepRates rates{.step_s = .01, .prefill_s = 1e-4, .attention_s = 0};
  SimRequest first{.prompt_tokens = 1200, .output_tokens = 1, .blocks = {1, 2, 3}};
  SimRequest second = first;
  // The whole prompt, then what is beyond two whole blocks.
  EXPECT_NEAR(bound_ttft_mean_s({first, second}, rates, 2048), ((.01 + .12) + (.01 + .0176)) / 2,
              1e-9);
  second.prompt_tokens = 1024;  // whole blocks: the last one is computed for its last token
  EXPECT_NEAR(bound_ttft_mean_s({first, second}, rates, 2048), ((.01 + .12) + (.01 + .0512)) / 2,
              1e-9);
  EXPECT_NEAR(bound_ttft_mean_s({first}, rates, 500), .03 + .12, 1e-9) << "three steps";
  const Workload chat = workload("chat", 120);
  const SimOptions options;
  EXPECT_GT(figures(chat, options).ttft_mean_s,
            bound_ttft_mean_s(chat.requests, options.rates, 2048));
}

// No step, no first token: somebody waits as long as requests are computed one after another.
TEST(Simulation, TellsForWhichShareOfTheTimeSomebodyWaits) {
  Workload of;
  for (int at = 0; at < 10; ++at)
    of.requests.push_back({.arrival_s = 10.0 * at, .prompt_tokens = 1000, .output_tokens = 1});
  const SimOptions options{.endpoints = 1,
                           .rates = {.step_s = 0, .prefill_s = 1e-3, .attention_s = 0}};
  EXPECT_NEAR(simulate(of, options).queued_share, 10.0 / 91, 1e-3);
}

std::string trace_path(const char* name) {
  const char* folder = std::getenv("PICKD_TRACES");
  const std::filesystem::path path =
      std::filesystem::path(
          folder != nullptr ? folder : std::string(PICKD_SOURCE_DIR) + "/../shared/traces") /
      name;
  return std::filesystem::exists(path) ? path.string() : "";
}

TEST(Bounds, OfTheTracesAreThosePublished) {
  const std::string conversation = trace_path("conversation_trace.jsonl");
  const std::string synthetic = trace_path("synthetic_trace.jsonl");
  if (conversation.empty() || synthetic.empty())
    GTEST_SKIP() << "the traces are not here; set PICKD_TRACES to their folder";
  constexpr std::uint64_t kTenMillionTokens = 10'000'000 / kBlockTokens;
  const Workload talk = make_workload({.name = conversation});
  EXPECT_NEAR(talk.bound_hit_rate, .374, .003);
  EXPECT_NEAR(bound_hit_rate(talk.requests, kTenMillionTokens), .291, .003);
  const Workload made = make_workload({.name = synthetic});
  EXPECT_NEAR(made.bound_hit_rate, .651, .003);
  EXPECT_NEAR(bound_hit_rate(made.requests, kTenMillionTokens), .577, .003);
}

// The shortest trace, learned from nothing: a tenth of its requests come while little is known.
TEST(LeastPredictedCost, PredictsTtftOfTheSyntheticTraceWithin15Percent) {
  const std::string synthetic = trace_path("synthetic_trace.jsonl");
  if (synthetic.empty())
    GTEST_SKIP() << "the traces are not here; set PICKD_TRACES to their folder";
  const Workload of = make_workload({.name = synthetic, .speed = 1.5});
  EXPECT_LT(figures(of, {.step_noise = .1, .report_noise = .1}).ttft_mape, .15);
}

TEST(Figures, AreThoseOfTheRequests) {
  SimOutcome outcome;
  for (int i = 1; i <= 100; ++i) {
    Prefilled served;
    served.ttft_s = .03 * i;
    served.itl_s = i <= 50 ? .02 : .06;
    outcome.requests.push_back(served);
  }
  const Figures of = figures_of(outcome);
  EXPECT_NEAR(of.ttft_mean_s, 1.515, 1e-9);
  EXPECT_NEAR(of.ttft_p90_s, 2.7, .031);
  EXPECT_NEAR(of.goodput, .5, 1e-9);  // the first 50: within 2 s and 50 ms
}

TEST(Chart, HoldsEverySeriesAndEscapesNames) {
  const std::string svg =
      draw_svg({"t", "x", "y", {{"a<b", {{1, 2}, {2, 3}}}, {"c&d", {{1, 1}, {2, 5}}}}});
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
  EXPECT_NE(svg.find("c&amp;d"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(draw_svg({"one point", "x", "y", {{"a", {{1, 2}}}}}).find("</svg>"), std::string::npos);
}

TEST(Attainment, IsTheShareOfThoseThatWantALatencyAndGetIt) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  SimOutcome outcome;
  outcome.requests = {
      {.ttft_s = 1, .itl_s = .02, .slo_ttft_s = 1, .slo_itl_s = .02},
      {.ttft_s = 1.1, .itl_s = .02, .slo_ttft_s = 1, .slo_itl_s = .02},
      {.ttft_s = 1, .itl_s = .03, .slo_ttft_s = 1, .slo_itl_s = .02},
      {.ttft_s = 9, .itl_s = .01, .slo_itl_s = .02},
      {.ttft_s = 1, .itl_s = none, .slo_ttft_s = 2, .slo_itl_s = .02},  // one token
      {.ttft_s = 99, .itl_s = 9},                                       // wants nothing
  };
  EXPECT_DOUBLE_EQ(figures_of(outcome).attainment, 3.0 / 5);
  outcome.failed = outcome.failed_with_slo = 1;
  EXPECT_DOUBLE_EQ(figures_of(outcome).attainment, 3.0 / 6);
  EXPECT_TRUE(std::isnan(figures_of({}).attainment));
}

TEST(SloProfile, AttainsTenPointsMoreThanTheEndpointPickersAtNinetyPercentLoad) {
  const Workload mixed = workload("mixed-slo", 300);
  const auto attained = [&mixed](const char* policy) {
    return figures(mixed, {.policy = policy, .step_noise = .1, .report_noise = .1}).attainment;
  };
  EXPECT_GT(attained("slo"), attained("epp-default") + .1);
  EXPECT_GT(attained("slo"), attained("least-predicted-cost") + .1);
}

TEST(SloProfile, IsTheLeastCostForRequestsThatWantNothing) {
  Workload plain = workload("mixed-slo", 200);
  for (SimRequest& request : plain.requests) request.slo_ttft_s = request.slo_itl_s = 0;
  const Figures slo = figures(plain, {.policy = "slo"});
  const Figures cost = figures(plain, {.policy = "least-predicted-cost"});
  // Apart by the first requests, which come before a model is ready.
  EXPECT_NEAR(slo.ttft_mean_s / cost.ttft_mean_s, 1, .1);
}

}  // namespace
}  // namespace pickd::sim

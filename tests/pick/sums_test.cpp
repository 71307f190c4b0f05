// How scores become a sum: weights, what a scorer does not know, scorers that fail.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "daemon/pick/parameters.hpp"
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick {

// Makes a profile of scorers that no configuration can name.
class ProfileAccess {
 public:
  using Scorers = std::vector<std::pair<std::unique_ptr<Scorer>, double>>;
  static std::unique_ptr<const Profile> make(Scorers scorers) {
    std::unique_ptr<Profile> made(new Profile());
    for (auto& [scorer, weight] : scorers) {
      const PluginInfo info{"test", PluginKind::kScorer, 0, "", "", {}, nullptr};
      made->use({&info, std::move(scorer)}, info.type.data(), weight);
    }
    const config::PluginConfig picker{"max-score-picker", "max-score-picker", nullptr, {}};
    config::Errors errors;
    const PluginInfo* info = find_plugin(picker.type);
    Parameters parameters(*info, picker, errors);
    made->use({info, info->make(parameters)}, picker.name, 1);
    return made;
  }
};

namespace test {
namespace {

struct Answer {
  bool ok = true;
  std::vector<float> scores;
};

class FixedScorer final : public Scorer {
 public:
  explicit FixedScorer(Answer answer) : answer_(std::move(answer)) {}
  bool score(const PickContext&, std::span<float> scores) const override {
    for (std::size_t at = 0; at < std::min(scores.size(), answer_.scores.size()); ++at) {
      scores[at] = answer_.scores[at];
    }
    return answer_.ok;
  }

 private:
  Answer answer_;
};

// A rig of three endpoints with the scores of `answers`, each with its weight.
std::unique_ptr<PickRig> rig_of(std::vector<std::pair<Answer, double>> answers) {
  auto rig = std::make_unique<PickRig>();
  ProfileAccess::Scorers scorers;
  for (auto& [answer, weight] : answers) {
    scorers.emplace_back(std::make_unique<FixedScorer>(std::move(answer)), weight);
  }
  rig->use(Schedule::of(ProfileAccess::make(std::move(scorers))));
  rig->add_endpoints(3);
  return rig;
}

const float kNan = std::nanf("");
using Names = std::vector<std::string>;

void expect_sums(PickRig& rig, float e1, float e2, float e3) {
  const auto scores = rig.scores(rig.request());
  EXPECT_FLOAT_EQ(scores.at("e1"), e1);
  EXPECT_FLOAT_EQ(scores.at("e2"), e2);
  EXPECT_FLOAT_EQ(scores.at("e3"), e3);
}

TEST(Sums, AreWeightTimesScoreAddedUpWithoutDivision) {
  const auto rig = rig_of({{{true, {1, 0.5F, 0}}, 2}, {{true, {0, 1, 0.5F}}, 3}});
  expect_sums(*rig, 2, 4, 1.5F);
  EXPECT_EQ(rig->names(rig->pick_only(rig->request())), (Names{"e2", "e1", "e3"}));
}

TEST(Sums, TakeANegativeWeightForTheReverse) {
  const auto rig = rig_of({{{true, {1, 0.5F, 0}}, -1}});
  expect_sums(*rig, -1, -0.5F, 0);
  EXPECT_EQ(rig->names(rig->pick_only(rig->request())), (Names{"e3", "e2", "e1"}));
}

TEST(Sums, TakeWeightsOfAnyFiniteValue) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const auto huge = rig_of({{{true, {1, 0.5F, 0}}, 1e300}, {{true, {0, 1, 1}}, 1}});
  EXPECT_EQ(huge->names(huge->pick_only(huge->request())), (Names{"e1", "e2", "e3"}));
  const auto tiny = rig_of({{{true, {0, 0.5F, 1}}, 5e-324}});
  EXPECT_EQ(tiny->name(tiny->pick_only(tiny->request())), "e3");
  // A sum beyond all numbers stays beyond them, and is in order all the same.
  const auto over =
      rig_of({{{true, {1, 0, 0}}, kMost}, {{true, {1, 0, 1}}, kMost}, {{true, {1, 1, 1}}, -kMost}});
  EXPECT_EQ(over->names(over->pick_only(over->request())), (Names{"e1", "e3", "e2"}));
}

TEST(Sums, HonourAWeightOfZero) {
  const auto rig = rig_of({{{true, {1, 0.5F, 0}}, 0}});
  expect_sums(*rig, 0, 0, 0);
  EXPECT_EQ(rig->pick_only(rig->request()).reason, abi::Reason::kTie);
}

TEST(Sums, ClampScoresToZeroAndOne) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto rig = rig_of({{{true, {7, -3, infinity}}, 2}});
  expect_sums(*rig, 2, 0, 2);
}

TEST(Sums, LeaveACandidateThatAScorerDoesNotKnowAsItIs) {
  const auto rig = rig_of({{{true, {0.5F, 0.5F, 0.5F}}, 1}, {{true, {1, kNoScore, 1}}, -1}});
  expect_sums(*rig, -0.5F, 0.5F, -0.5F);
  EXPECT_EQ(rig->counted(abi::Counter::plugin_failures), 0U);
}

TEST(Sums, LeaveOutAScorerThatGivesNoNumberAndCountIt) {
  const auto rig = rig_of({{{true, {1, kNan, 0}}, 5}, {{true, {0, 0.5F, 1}}, 1}});
  expect_sums(*rig, 0, 0.5F, 1);
  EXPECT_EQ(rig->counted(abi::Counter::plugin_failures), 1U);
  rig->pick(rig->request());
  EXPECT_EQ(rig->counted(abi::Counter::plugin_failures), 2U) << "once a pick";
}

TEST(Sums, LeaveOutAScorerThatFailsAndCountIt) {
  const auto rig = rig_of({{{false, {1, 1, 0}}, 5}, {{true, {0, 0.5F, 1}}, 1}});
  expect_sums(*rig, 0, 0.5F, 1);
  EXPECT_EQ(rig->counted(abi::Counter::plugin_failures), 1U);
}

TEST(Sums, LetAPickGoOnWhenEveryScorerFails) {
  const auto rig = rig_of({{{false, {}}, 1}, {{true, {kNan, kNan, kNan}}, 1}});
  const PickResult result = rig->pick(rig->request());
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.reason, abi::Reason::kTie);
  EXPECT_EQ(result.count, 3U);
}

// Field case 2: scores 50, 50, 30, 30, 10, three picks a call.
TEST(Ties, RotateWithinEachTierAndNotBeyond) {
  auto rig = rig_of({{{true, {0.5F, 0.5F, 0.3F, 0.3F, 0.1F}}, 100}});
  for (const char* name : {"e4", "e5"}) rig->add(rig->spec(name));
  Tally first;
  Tally third;
  for (int call = 0; call < 1000; ++call) {
    auto request = rig->request();
    request.endpoints_max = 3;
    const PickResult result = rig->pick_only(request);
    rig->reservations().end(request.ticket, PickRig::kUid);
    ASSERT_EQ(result.count, 3U);
    ASSERT_EQ(result.reason, abi::Reason::kTie);
    ++first[rig->name(result, 0)];
    ++third[rig->name(result, 2)];
  }
  EXPECT_EQ(first["e1"] + first["e2"], 1000U);
  EXPECT_GE(first["e1"], 450U);
  EXPECT_LE(first["e1"], 550U);
  EXPECT_EQ(third["e3"] + third["e4"], 1000U);
  EXPECT_GE(third["e3"], 450U);
  EXPECT_LE(third["e3"], 550U);
}

TEST(Ties, DrawEveryOrderOfATierEquallyOften) {
  const auto rig = rig_of({});
  std::map<Names, int> orders;
  for (int call = 0; call < 6000; ++call) {
    const auto request = rig->request();
    ++orders[rig->names(rig->pick_only(request))];
    rig->reservations().end(request.ticket, PickRig::kUid);
  }
  ASSERT_EQ(orders.size(), 6U);
  for (const auto& [order, count] : orders) {
    EXPECT_GE(count, 880);
    EXPECT_LE(count, 1120);
  }
}

// More equals than a result lists.
TEST(Ties, GiveEveryPlaceToEachOfManyEqualsAlike) {
  auto rig = rig_of({{{true, {0, 0.5F, 0}}, -1}});  // e2 is behind all others
  for (int at = 4; at <= 21; ++at) rig->add(rig->spec("e" + std::to_string(at)));
  std::vector<Tally> places(abi::kResultEndpointsMax);
  for (int call = 0; call < 10'000; ++call) {
    const auto request = rig->request();
    const Names names = rig->names(rig->pick_only(request));
    rig->reservations().end(request.ticket, PickRig::kUid);
    ASSERT_EQ(std::set(names.begin(), names.end()).size(), abi::kResultEndpointsMax);
    for (std::size_t place = 0; place < names.size(); ++place) ++places[place][names[place]];
  }
  for (const Tally& tally : places) {
    EXPECT_EQ(tally.size(), 20U);
    EXPECT_EQ(tally.count("e2"), 0U);
    for (const auto& [name, count] : tally) {
      EXPECT_GT(count, 380U) << name;
      EXPECT_LT(count, 620U) << name;
    }
  }
}

TEST(Ranking, IsThatOfASortForAnyNumberOfCandidatesAndTies) {
  base::Random random(5);
  for (std::size_t count = 3; count <= 60; ++count) {
    for (const std::uint32_t levels : {2U, 7U, 1000U}) {
      std::vector<float> scores(count);
      for (float& score : scores)
        score = static_cast<float>(random.below(levels)) / static_cast<float>(levels);
      const auto rig = rig_of({{{true, scores}, 1}});
      for (std::size_t at = 4; at <= count; ++at) rig->add(rig->spec("e" + std::to_string(at)));
      const PickResult result = rig->pick_only(rig->request());
      std::vector<float> sorted = scores;
      std::sort(sorted.rbegin(), sorted.rend());
      ASSERT_EQ(result.count, std::min(count, abi::kResultEndpointsMax));
      std::set<std::uint32_t> ids;
      for (std::uint32_t at = 0; at < result.count; ++at) {
        const std::uint32_t id = result.endpoints[at].endpoint->id;
        EXPECT_FLOAT_EQ(result.endpoints[at].score, sorted[at]) << count << " " << at;
        EXPECT_FLOAT_EQ(scores[id - 1], sorted[at]) << count << " " << at;
        ids.insert(id);
      }
      EXPECT_EQ(ids.size(), result.count);
      EXPECT_EQ(result.reason == abi::Reason::kTie, sorted[0] == sorted[1]);
    }
  }
}

TEST(Ties, AreNoneWhenOneLeadsAlone) {
  const auto rig = rig_of({{{true, {0.5F, 1, 0.5F}}, 1}});
  EXPECT_EQ(rig->pick_only(rig->request()).reason, abi::Reason::kScore);
}

// Field case 17: weights as the configuration says them, in the sums.
class Weights : public ::testing::Test {
 protected:
  // The lead of an idle endpoint over the busiest, which is the weight of active-request-scorer.
  static float lead(const std::string& weight) {
    char pattern[] = "/tmp/pickd-weights-XXXXXX";
    const int fd = ::mkstemp(pattern);
    const std::string text =
        "scheduling:\n  plugins:\n    - type: active-request-scorer\n  schedulingProfiles:\n"
        "    - name: default\n      plugins:\n        - pluginRef: active-request-scorer\n" +
        (weight.empty() ? "" : "          weight: " + weight + "\n");
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
    const auto loaded = config::load_config(pattern, {});
    ::unlink(pattern);
    if (!loaded) throw std::runtime_error(loaded.error().text);
    RigOptions options;
    options.scheduling = loaded.value().config.scheduling;
    PickRig rig(options);
    rig.add_endpoints(2);
    rig.set_load("e2", 10, 0);
    const auto scores = rig.scores(rig.request());
    return scores.at("e1") - scores.at("e2");
  }
};

TEST_F(Weights, AreOneWhenAbsent) { EXPECT_FLOAT_EQ(lead(""), 1); }
TEST_F(Weights, AreHonouredWhenZero) { EXPECT_FLOAT_EQ(lead("0.0"), 0); }
TEST_F(Weights, AreHonouredWhenOneAndAHalf) { EXPECT_FLOAT_EQ(lead("1.5"), 1.5F); }
TEST_F(Weights, AreHonouredWhenNegative) { EXPECT_FLOAT_EQ(lead("-1"), -1); }
TEST_F(Weights, AreRefusedWhenTheyAreNoNumbers) {
  EXPECT_THROW(lead(".nan"), std::runtime_error);
  EXPECT_THROW(lead(".inf"), std::runtime_error);
}

}  // namespace
}  // namespace test
}  // namespace pickd::pick

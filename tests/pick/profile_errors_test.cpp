// What is wrong with a scheduling configuration is said with file, line, key and what would be
// right.
#include <unistd.h>

#include <fstream>
#include <set>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

// The error of a file that the configuration takes and the profile does not; "" when it is good.
std::string error_of(const std::string& text) {
  char pattern[] = "/tmp/pickd-profile-XXXXXX";
  const std::string directory = ::mkdtemp(pattern);
  const std::string path = directory + "/pickd.yaml";
  std::ofstream(path) << text;
  const auto loaded = config::load_config(path, {});
  ::unlink(path.c_str());
  ::rmdir(directory.c_str());
  if (!loaded) return "not loaded: " + loaded.error().text;
  const auto profile = Schedule::make(loaded.value().config.scheduling);
  if (profile) return "";
  EXPECT_EQ(profile.error().code, -EINVAL);
  std::string error = profile.error().text;
  for (std::size_t at; (at = error.find(directory + "/")) != std::string::npos;) {
    error.erase(at, directory.size() + 1);
  }
  return error;
}

// One plugin of `type` with `parameters`, used in a profile.
std::string one(const std::string& type, const std::string& parameters = "") {
  return "scheduling:\n"
         "  plugins:\n"
         "    - type: " +
         type + "\n" + (parameters.empty() ? "" : "      parameters: " + parameters + "\n") +
         "  schedulingProfiles:\n"
         "    - name: default\n"
         "      plugins:\n"
         "        - pluginRef: " +
         type + "\n";
}

void expect_words(const std::string& error, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(error.find(word), std::string::npos) << "no \"" << word << "\" in: " << error;
  }
}

// What plugins need that have no defaults for everything.
std::string needed(const std::string& type) {
  static const std::map<std::string, std::string> kNeeded = {
      {"label-selector-filter", "{matchLabels: {a: b}}"},
      {"by-label-selector", "{matchLabels: {a: b}}"},
      {"external-scorer", "{path: " PICKD_BINARY_DIR "/lib/example_plugin.so}"},
      {"external-filter", "{path: " PICKD_BINARY_DIR "/lib/example_plugin.so}"},
      {"header-label-affinity-scorer", "{headerName: x-slice, labelKey: slice}"},
      {"utilization-filter", "{conditions: [{metric: waiting-queue, maxValue: 3}]}"},
      {"endpoint-attribute-scorer",
       "{attributeKey: waiting-queue, algorithm: {type: linear_lower_is_better}}"},
      {"endpoint-attribute-filter",
       "{attribute: waiting-queue, algorithm: {type: topK, topK: {k: 2}}}"},
  };
  const auto at = kNeeded.find(type);
  return at == kNeeded.end() ? "" : at->second;
}

TEST(ProfileErrors, AreNoneForEveryPluginWithItsDefaults) {
  for (const PluginInfo& info : plugin_infos()) {
    if (!stands_in_profiles(info.kind)) continue;
    const std::string type(info.type);
    EXPECT_EQ(error_of(one(type, needed(type))), "") << type;
  }
}

TEST(ProfileErrors, AreNoneForPluginsThatStandBesideTheProfiles) {
  for (const PluginInfo& info : plugin_infos()) {
    if (stands_in_profiles(info.kind)) continue;
    EXPECT_EQ(error_of("scheduling:\n  plugins:\n    - type: queue-scorer\n    - type: " +
                       std::string(info.type) +
                       "\n  schedulingProfiles:\n    - name: decode\n      plugins:\n"
                       "        - pluginRef: queue-scorer\n"),
              "")
        << info.type;
    expect_words(error_of(one(std::string(info.type))),
                 {"pickd.yaml:7", kind_name(info.kind), "remove it from the profile"});
  }
}

TEST(ProfileErrors, SayWhatAPluginNeeds) {
  expect_words(error_of(one("header-label-affinity-scorer", "{labelKey: slice}")),
               {"pickd.yaml:3", "parameters.headerName", "is missing"});
  expect_words(error_of(one("utilization-filter")), {"conditions", "is missing"});
  expect_words(error_of(one("utilization-filter", "{conditions: [{metric: x, maxValue: 1}]}")),
               {"pickd.yaml:4", "`x`", "waiting-queue"});
  expect_words(error_of(one("utilization-filter",
                            "{conditions: [{metric: kv-cache-utilization, "
                            "maxValue: 80}]}")),
               {"maxValue of kv-cache-utilization", "1"});
  expect_words(error_of(one("endpoint-attribute-filter",
                            "{attribute: waiting-queue, algorithm: {type: range}}")),
               {"algorithm.range.min", "algorithm.range.max"});
  expect_words(error_of(one("endpoint-attribute-scorer",
                            "{attributeKey: GPUUtilization, "
                            "algorithm: {type: linear_lower_is_better}}")),
               {"GPUUtilization", "kv-cache-utilization", "label:KEY"});
  expect_words(
      error_of(one("endpoint-attribute-scorer",
                   "{attributeKey: waiting-queue, algorithm: {type: linear_lower_is_better,"
                   " normalization: {fixedRange: {min: 3, max: 3}}}}")),
      {"fixedRange.max", "greater than min"});
}

TEST(ProfileErrors, NameAReferenceToNothing) {
  expect_words(error_of(one("prefix-cache-scorer", "{prefixMatchInfoProducerName: precise}")),
               {"pickd.yaml:4", "prefixMatchInfoProducerName", "`precise`"});
  EXPECT_EQ(error_of(one("prefix-cache-scorer",
                         "{prefixMatchInfoProducerName: approx-prefix-cache-producer}")),
            "");
}

// A plugin of another kind produces nothing, and no data source refers to what refers to it.
TEST(ProfileErrors, NameAReferenceToWhatIsNoProducerOfTheKind) {
  const auto naming = [](const std::string& name, const std::string& other) {
    return "    - {name: " + name +
           ", type: no-hit-lru-scorer, parameters: {prefixMatchInfoProducerName: " + other + "}}\n";
  };
  const auto profile =
      std::string("  schedulingProfiles:\n    - {name: default, plugins: [{pluginRef: a}]}\n");
  const auto wrong = [&](const std::string& plugins) {
    return error_of("scheduling:\n  plugins:\n" + plugins + profile);
  };
  const char* right = "`approx-prefix-cache-producer`";
  expect_words(wrong(naming("a", "b") + naming("b", "a")),
               {"pickd.yaml:3: ", "pickd.yaml:4: ", "`b` is of the type `no-hit-lru-scorer`",
                "`a` is of the type", right});
  expect_words(wrong(naming("a", "a")), {"pickd.yaml:3: ", "prefixMatchInfoProducerName", right});
  expect_words(wrong(naming("a", "inflight-load-producer")), {"pickd.yaml:3: ", right});
  EXPECT_EQ(wrong(naming("a", "p") + "    - {name: p, type: approx-prefix-cache-producer}\n"), "");
  expect_words(wrong(naming("a", "p") + "    - {name: p, type: predicted-latency-producer, "
                                        "parameters: {inFlightLoadProducerName: p}}\n"),
               {"pickd.yaml:4: ", "inFlightLoadProducerName", "`inflight-load-producer`"});
  expect_words(error_of("scheduling:\n  plugins:\n" + naming("a", "c") + profile),
               {"pickd.yaml:3", "no plugin has the name `c`"});
}

TEST(ProfileErrors, NameAPluginThatPickdDoesNotHaveAndTheNearest) {
  expect_words(error_of(one("queue-scorrer")), {"pickd.yaml:3", "queue-scorrer", "`queue-scorer`"});
  expect_words(error_of(one("by-label")), {"`by-label`", "`by-label-selector`"});
  expect_words(error_of(one("pd-profile-handler")), {"`disagg-profile-handler`"});
}

TEST(ProfileErrors, RefuseParametersThatAPluginDoesNotKnow) {
  expect_words(error_of(one("active-request-scorer", "{idleTreshold: 3}")),
               {"pickd.yaml:4", "idleTreshold", "idleThreshold"});
  expect_words(error_of(one("queue-scorer", "{anything: 1}")), {"pickd.yaml:4", "anything"});
  expect_words(error_of(one("round-robin-picker", "{anything: 1}")), {"pickd.yaml:4", "anything"});
}

TEST(ProfileErrors, RefuseParametersOutOfTheirRange) {
  expect_words(error_of(one("active-request-scorer", "{maxBusyScore: 1.5}")),
               {"pickd.yaml:4", "plugins[active-request-scorer].parameters.maxBusyScore", "1"});
  expect_words(error_of(one("token-load-scorer", "{queueThresholdTokens: 0}")),
               {"queueThresholdTokens"});
  expect_words(error_of(one("max-score-picker", "{maxNumOfEndpoints: 9}")),
               {"maxNumOfEndpoints", "8"});
  expect_words(error_of(one("session-affinity-scorer", "{ttl: 13h}")), {"ttl"});
  expect_words(error_of(one("prefix-cache-scorer", "{matchLengthWeight: -0.1}")),
               {"matchLengthWeight"});
  expect_words(error_of(one("prefix-cache-scorer", "{matchLengthWeight: .nan}")),
               {"matchLengthWeight"});
}

TEST(ProfileErrors, ListEverythingThatIsWrong) {
  const std::string error = error_of(one("active-request-scorer", "{idleThreshold: -1, x: 2}"));
  expect_words(error, {"idleThreshold", "parameters.x"});
  EXPECT_NE(error.find('\n'), std::string::npos) << "a line each";
}

TEST(ProfileErrors, TakeOnePickerOnly) {
  const std::string two =
      "scheduling:\n  plugins:\n    - type: max-score-picker\n    - type: round-robin-picker\n"
      "  schedulingProfiles:\n    - name: default\n      plugins:\n"
      "        - pluginRef: max-score-picker\n        - pluginRef: round-robin-picker\n";
  expect_words(error_of(two), {"pickd.yaml:9", "one picker"});
}

TEST(ProfileErrors, NameAnUnknownProfileAndTheNearest) {
  expect_words(error_of("scheduling:\n  profile: round-robbin\n"),
               {"pickd.yaml:2", "round-robbin", "`round-robin`"});
}

// Without predictions this scorer knows nothing of anybody, and every pick would be a draw.
TEST(ProfileErrors, RefuseWhatGoesByPredictionsAloneWhereNothingIsPredicted) {
  const auto file = std::make_shared<const std::string>("pickd.yaml");
  config::SchedulingConfig by_name;
  by_name.profile = "least-predicted-cost";
  by_name.profile_place = {file, 3, 1};
  const auto named = Schedule::make(by_name, false);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().text,
            "pickd.yaml:3: scheduling.profile: `least-predicted-cost` goes by predictions, and "
            "`latency.enabled` is false; set that to true, or take another profile, `epp-default` "
            "for example");
  auto listed = scheduling({{"least-predicted-cost-scorer", 2.0}, {"queue-scorer"}});
  listed.plugins[0].place = {file, 5, 1};
  const auto made = Schedule::make(listed, false);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text.find("pickd.yaml:5: type: `least-predicted-cost-scorer` goes by"),
            std::string::npos)
      << made.error().text;
  EXPECT_TRUE(Schedule::make(listed, true));
  // Nobody asked for it: the default there is another one.
  auto by_default = Schedule::make({}, false);
  ASSERT_TRUE(by_default);
  EXPECT_EQ((*by_default)->name(), "epp-default");
  // These have something else to go by.
  EXPECT_TRUE(Schedule::make(scheduling({{"latency-scorer"}, {"slo-risk-scorer"}}), false));
}

TEST(ProfileErrors, SayWhatALabelSelectorNeeds) {
  const auto selector = [](const std::string& parameters) {
    return error_of(one("label-selector-filter", parameters));
  };
  expect_words(selector(""), {"matchLabels or matchExpressions"});
  expect_words(selector("{matchLabels: {}, matchExpressions: []}"), {"matchLabels or"});
  EXPECT_EQ(selector("{matchExpressions: [{key: a, operator: Is}]}").find('\n'), std::string::npos)
      << "one mistake, one error";
  expect_words(selector("{matchLabels: [a]}"), {"pickd.yaml:4", "map of label to value"});
  expect_words(selector("{matchLabels: {zone: [a]}}"), {"`zone`", "must be text"});
  expect_words(selector("{matchExpressions: {key: a}}"), {"must be a list"});
  expect_words(selector("{matchExpressions: [{operator: In}]}"), {"`key` and `operator`"});
  expect_words(selector("{matchExpressions: [{key: a, operator: Is}]}"),
               {"`Is`", "In, NotIn, Exists or DoesNotExist"});
  expect_words(selector("{matchExpressions: [{key: a, operator: In}]}"), {"`values`"});
  expect_words(selector("{matchExpressions: [{key: a, operator: In, values: []}]}"), {"`values`"});
  expect_words(selector("{matchExpressions: [{key: a, operator: In, values: b}]}"), {"`values`"});
  expect_words(selector("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}"),
               {"take no `values`"});
}

TEST(ProfileErrors, RefuseWhatALabelExpressionDoesNotKnow) {
  const auto selector = [](const std::string& parameters) {
    return error_of(one("label-selector-filter", parameters));
  };
  expect_words(selector("{matchExpressions: [{key: a, operator: Exists, vales: [b]}]}"),
               {"`vales`"});
  expect_words(selector("{matchExpressions: [{key: a, operator: In, values: [[b]]}]}"),
               {"must be text"});
  expect_words(selector("{matchExpressions: [{key: a, operator: In, values: [b], values2: c}]}"),
               {"`values2`"});
  expect_words(selector("{matchLabels: {a: b}, matchLabel: {c: d}}"), {"matchLabel"});
}

TEST(Registry, KnowsEachTypeOnce) {
  std::set<std::string_view> types;
  for (const PluginInfo& info : plugin_infos()) {
    EXPECT_TRUE(types.insert(info.type).second) << info.type;
    EXPECT_EQ(find_plugin(info.type), &info);
    EXPECT_FALSE(info.summary.empty()) << info.type;
    EXPECT_TRUE(info.kind != PluginKind::kScorer || !info.formula.empty()) << info.type;
  }
  EXPECT_EQ(find_plugin("nothing"), nullptr);
}

}  // namespace
}  // namespace pickd::pick::test

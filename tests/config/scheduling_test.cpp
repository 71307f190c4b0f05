// The EndpointPickerConfig schema, in place and in a file of its own.
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigScheduling : public ConfigFiles {
 protected:
  static std::string with_weight(const std::string& weight) {
    return "scheduling:\n  plugins:\n    - type: queue-scorer\n  schedulingProfiles:\n"
           "    - name: default\n      plugins:\n        - pluginRef: queue-scorer\n" +
           (weight.empty() ? "" : "          weight: " + weight + "\n");
  }
};

const char* const kEppFile = R"(apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: approx-prefix-cache-producer
  parameters: {maxPrefixTokensToMatch: 131072}
- {name: pfx, type: prefix-cache-scorer}
- {name: load, type: token-load-scorer}
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: pfx, weight: 3}
  - {pluginRef: load, weight: 2}
  - {pluginRef: max-score-picker}
)";

TEST_F(ConfigScheduling, ReadsPluginsAndProfiles) {
  std::string yaml = "scheduling:\n";
  std::istringstream lines(kEppFile);
  for (std::string line; std::getline(lines, line);) yaml += "  " + line + "\n";
  const SchedulingConfig scheduling = good(yaml).scheduling;
  ASSERT_EQ(scheduling.plugins.size(), 4U);
  EXPECT_EQ(scheduling.plugins[0].type, "approx-prefix-cache-producer");
  EXPECT_EQ(scheduling.plugins[0].name, "approx-prefix-cache-producer");
  EXPECT_EQ(scheduling.plugins[0].parameters->find("maxPrefixTokensToMatch")->scalar, "131072");
  EXPECT_EQ(scheduling.plugins[1].name, "pfx");
  EXPECT_EQ(scheduling.plugins[1].type, "prefix-cache-scorer");
  EXPECT_EQ(without_directory(scheduling.plugins[1].place.text()), "pickd.yaml:7");
  ASSERT_EQ(scheduling.profiles.size(), 1U);
  EXPECT_EQ(scheduling.profiles[0].name, "default");
  ASSERT_EQ(scheduling.profiles[0].plugins.size(), 3U);
  EXPECT_EQ(scheduling.profiles[0].plugins[0].plugin_ref, "pfx");
  EXPECT_EQ(scheduling.profiles[0].plugins[0].weight, 3.0);
  EXPECT_FALSE(scheduling.profiles[0].plugins[2].weight.has_value());
}

TEST_F(ConfigScheduling, AnEppFileLoadsUnchangedFromWhereTheConfigurationStands) {
  write("epp.yaml", kEppFile);
  const Config named = good("schedulingConfigFile: epp.yaml\n");
  EXPECT_EQ(named.scheduling.plugins.size(), 4U);
  EXPECT_EQ(named.scheduling.file, "epp.yaml");
  EXPECT_EQ(without_directory(named.scheduling.plugins[1].place.text()), "epp.yaml:6");
  EXPECT_EQ(good("scheduling: {schedulingConfigFile: epp.yaml}\n"), named);
  EXPECT_EQ(good("scheduling: {profile: x}\n",
                 {"PICKD_SCHEDULING_CONFIG_FILE=" + directory_ + "/epp.yaml"}),
            named);
}

TEST_F(ConfigScheduling, AnEppFileMayBeTheWholeConfiguration) {
  const Config config = good(kEppFile);
  EXPECT_EQ(config.scheduling.plugins.size(), 4U);
  EXPECT_EQ(config.state, Config().state);
  EXPECT_EQ(bad("apiVersion: v1\nkind: EndpointPickerConfig\nstate: {}\n"),
            "pickd.yaml:1: apiVersion: must be one of llm-d.ai/v1alpha1, "
            "inference.networking.x-k8s.io/v1alpha1, is `v1`\n"
            "pickd.yaml:3: state: unknown key; known: apiVersion, kind, featureGates, plugins, "
            "schedulingProfiles, saturationDetector, flowControl, metadata, dataLayer, "
            "requestHandler");
}

TEST_F(ConfigScheduling, ReadsTheSaturationDetectorInEveryForm) {
  const std::string plugins = "  plugins: [{type: concurrency-detector, name: busy}]\n";
  EXPECT_EQ(good("scheduling:\n" + plugins + "  saturationDetector: {pluginRef: busy}\n")
                .scheduling.detector,
            "busy");
  EXPECT_EQ(
      good("scheduling:\n" + plugins + "  flowControl: {saturationDetector: {pluginRef: busy}}\n")
          .scheduling.detector,
      "busy");
  const SchedulingConfig thresholds =
      good("scheduling: {saturationDetector: {queueDepthThreshold: 7}}\n").scheduling;
  EXPECT_EQ(thresholds.detector, "");
  EXPECT_EQ(thresholds.detector_parameters->find("queueDepthThreshold")->scalar, "7");
  EXPECT_EQ(bad("scheduling:\n" + plugins + "  saturationDetector: {pluginRef: bussy}\n"),
            "pickd.yaml:3: scheduling.saturationDetector.pluginRef: no plugin has the name `bussy` "
            "(did you mean `busy`?)");
  EXPECT_EQ(bad("scheduling:\n" + plugins +
                "  saturationDetector: {pluginRef: busy}\n"
                "  flowControl: {saturationDetector: {pluginRef: busy}}\n"),
            "pickd.yaml:4: scheduling.flowControl.saturationDetector: is given already, at "
            "pickd.yaml:3");
}

TEST_F(ConfigScheduling, AFileOfItsOwnMustSayWhatItIs) {
  write("epp.yaml", "plugins: []\n");
  EXPECT_EQ(bad("schedulingConfigFile: epp.yaml\n"),
            "epp.yaml:1: apiVersion: is missing; an EndpointPickerConfig starts with it\n"
            "epp.yaml:1: kind: is missing; an EndpointPickerConfig starts with it");
  EXPECT_EQ(bad("\nschedulingConfigFile: none.yaml\n"),
            "pickd.yaml:2: schedulingConfigFile: none.yaml: No such file or directory");
}

TEST_F(ConfigScheduling, TakesBothApiVersionsAndNoOther) {
  good("scheduling: {apiVersion: inference.networking.x-k8s.io/v1alpha1}\n");
  EXPECT_EQ(bad("scheduling: {apiVersion: v1, kind: Pod}\n"),
            "pickd.yaml:1: scheduling.apiVersion: must be one of llm-d.ai/v1alpha1, "
            "inference.networking.x-k8s.io/v1alpha1, is `v1`\n"
            "pickd.yaml:1: scheduling.kind: must be one of EndpointPickerConfig, is `Pod`");
}

// Field case 17: an absent weight is 1, and 0, fractions and negative ones are honoured.
TEST_F(ConfigScheduling, HonoursEveryFiniteWeight) {
  const auto weight = [this](const std::string& text) {
    return good(with_weight(text)).scheduling.profiles[0].plugins[0].weight;
  };
  EXPECT_EQ(weight(""), std::nullopt);
  EXPECT_EQ(weight("null"), std::nullopt);
  EXPECT_EQ(weight("~"), std::nullopt);
  EXPECT_EQ(weight("0.0"), 0.0);
  EXPECT_EQ(weight("0"), 0.0);
  EXPECT_EQ(weight("1.0"), 1.0);
  EXPECT_EQ(weight("1.5"), 1.5);
  EXPECT_EQ(weight("-1"), -1.0);
  EXPECT_EQ(weight("2e-3"), 0.002);
}

TEST_F(ConfigScheduling, RefusesWeightsThatAreNotFiniteNumbers) {
  for (const std::string weight :
       {".nan", ".NaN", "nan", ".inf", "-.inf", "inf", "1e999", "-1e999", "x"}) {
    EXPECT_EQ(bad(with_weight(weight)),
              "pickd.yaml:8: scheduling.schedulingProfiles[0].plugins[0].weight: must be a finite "
              "number, is `" +
                  weight + "`");
  }
  EXPECT_EQ(bad(with_weight("\"2\"")),
            "pickd.yaml:8: scheduling.schedulingProfiles[0].plugins[0].weight: is text, `2`; write "
            "the number without quotes");
  EXPECT_EQ(bad(with_weight("[1]")),
            "pickd.yaml:8: scheduling.schedulingProfiles[0].plugins[0].weight: must be a single "
            "value, is a list");
}

TEST_F(ConfigScheduling, RefusesReferencesToNothingWithTheNearestName) {
  EXPECT_EQ(
      bad("scheduling:\n  plugins: [{type: queue-scorer}]\n  schedulingProfiles:\n"
          "    - {name: p, plugins: [{pluginRef: queue-score}]}\n"),
      "pickd.yaml:4: scheduling.schedulingProfiles[0].plugins[0].pluginRef: no plugin has the "
      "name `queue-score` (did you mean `queue-scorer`?)");
  EXPECT_EQ(
      bad("scheduling: {schedulingProfiles: [{name: p, plugins: [{pluginRef: a}]}]}\n"),
      "pickd.yaml:1: scheduling.schedulingProfiles[0].plugins[0].pluginRef: no plugin has the "
      "name `a`; `plugins` lists none");
}

TEST_F(ConfigScheduling, RefusesNamesThatAreTakenAndKeysThatAreUnknown) {
  EXPECT_EQ(bad("scheduling:\n  plugins:\n    - type: a\n    - {type: b, name: a}\n"),
            "pickd.yaml:4: scheduling.plugins[1].name: the name `a` is taken by the plugin at "
            "pickd.yaml:3; give one of them another `name`");
  EXPECT_EQ(bad("scheduling:\n  plugins: [{type: a}]\n  schedulingProfiles:\n"
                "    - name: p\n    - name: p\n"),
            "pickd.yaml:5: scheduling.schedulingProfiles[1].name: the name `p` is taken by the "
            "profile at pickd.yaml:4");
  EXPECT_EQ(
      bad("scheduling: {plugins: [{type: a, params: {}}]}\n"),
      "pickd.yaml:1: scheduling.plugins[0].params: unknown key; known: type, name, parameters");
  EXPECT_EQ(bad("scheduling: {plugins: [{name: a}]}\n"),
            "pickd.yaml:1: scheduling.plugins[0].type: is missing; every entry needs it");
  EXPECT_EQ(bad("scheduling: {plugins: [{type: a, parameters: 5}]}\n"),
            "pickd.yaml:1: scheduling.plugins[0].parameters: must be a map (`key: value`), is `5`");
  EXPECT_EQ(bad("scheduling: {plugin: []}\n"),
            "pickd.yaml:1: scheduling.plugin: unknown key (did you mean `plugins`?)");
}

TEST_F(ConfigScheduling, SaysWhatOfTheSchemaItDoesNotDo) {
  EXPECT_EQ(
      bad("scheduling: {flowControl: {maxBytes: 1}}\n"),
      "pickd.yaml:1: scheduling.flowControl.maxBytes: there is no flow control in this version; "
      "remove it");
  EXPECT_EQ(bad("scheduling: {featureGates: [flowControl]}\n"),
            "pickd.yaml:1: scheduling.featureGates: no such gate, `flowControl`: there is no flow "
            "control in this version");
  good("scheduling: {featureGates: [dataLayer, prepareDataPlugins], dataLayer: }\n");
}

TEST_F(ConfigScheduling, RefusesTwoWaysToSayItAtOnce) {
  const std::string either =
      "say either scheduling.profile, or schedulingConfigFile, or plugins with schedulingProfiles; "
      "more than one is given";
  EXPECT_EQ(bad("scheduling:\n  profile: x\n  plugins: [{type: a}]\n"),
            "pickd.yaml:2: scheduling.profile: " + either);
  EXPECT_EQ(bad("schedulingConfigFile: /x\nscheduling:\n  plugins: [{type: a}]\n"),
            "pickd.yaml:1: schedulingConfigFile: " + either);
  EXPECT_EQ(bad("schedulingConfigFile: /x\nscheduling:\n  schedulingConfigFile: /y\n"),
            "pickd.yaml:3: schedulingConfigFile: is set already, at pickd.yaml:1\n"
            "pickd.yaml:1: schedulingConfigFile: /x: No such file or directory");
}

TEST_F(ConfigScheduling, PluginsWithoutAProfileMakeOneOfAll) {
  const SchedulingConfig scheduling =
      good("scheduling: {plugins: [{type: a}, {type: b}]}\n").scheduling;
  ASSERT_EQ(scheduling.profiles.size(), 1U);
  EXPECT_EQ(scheduling.profiles[0].name, "default");
  ASSERT_EQ(scheduling.profiles[0].plugins.size(), 2U);
  EXPECT_EQ(scheduling.profiles[0].plugins[1].plugin_ref, "b");
}

}  // namespace
}  // namespace pickd::config

// What a file must still name when it is read again.
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

constexpr const char* kWhole =
    "listen: {mode: \"0600\"}\n"
    "state: {ttl: 45s}\n"
    "endpoints: [{name: a, address: \"h:1\"}]\n"
    "pools: [{name: p, endpoints: [{name: b, address: \"h:2\"}]}]\n"
    "log: {level: debug}\n"
    "scheduling: {profile: round-robin}\n";

class LostSections : public ConfigFiles {
 protected:
  // What is wrong with `next` after `before`; empty: nothing.
  std::string refused(const std::string& before, const std::string& next) const {
    const auto running = load(before);
    EXPECT_TRUE(running.ok()) << running.error().text;
    const auto loaded = load(next);
    EXPECT_TRUE(loaded.ok()) << loaded.error().text;
    const auto kept = check_kept(running.value().sections, loaded.value());
    return kept ? "" : without_directory(kept.error().text);
  }
};

TEST_F(LostSections, AnEmptyFileIsRefusedWhereSomethingWasSet) {
  for (const char* empty : {"", "# nothing\n", "scheduling:\nstate:\n", "{}\n"}) {
    EXPECT_EQ(refused("log: {level: debug}\nstate: {ttl: 45s}\n", empty),
              "pickd.yaml: holds nothing, while the configuration in force sets `log`, `state`; "
              "write the file again, or restart pickd to have the defaults")
        << empty;
    EXPECT_EQ(refused("# nothing\n", empty), "");
    EXPECT_EQ(refused("scheduling: {}\n", empty), "");
  }
}

TEST_F(LostSections, EachIsNamedWithItsPlaceAndWhatToWrite) {
  EXPECT_EQ(refused(kWhole, "log: {level: debug}\n"),
            "pickd.yaml: listen: was set at pickd.yaml:1 and is missing; write `listen: {}` to go "
            "back to the default\n"
            "pickd.yaml: state: was set at pickd.yaml:2 and is missing; write `state: {}` to go "
            "back to the default\n"
            "pickd.yaml: endpoints: was set at pickd.yaml:3 and is missing; write `endpoints: []` "
            "to go back to the default\n"
            "pickd.yaml: pools: was set at pickd.yaml:4 and is missing; write `pools: []` to go "
            "back to the default\n"
            "pickd.yaml: scheduling: was set at pickd.yaml:6 and is missing; write `scheduling: "
            "{}` to go back to the default");
}

TEST_F(LostSections, WhatTheErrorsSayToWriteIsTaken) {
  EXPECT_EQ(refused(kWhole, "listen: {}\nstate: {}\nendpoints: []\npools: []\nscheduling: {}\n"),
            "");
  EXPECT_EQ(refused(kWhole, kWhole), "");
}

TEST_F(LostSections, ASchedulingInAFileOfItsOwnIsOneToo) {
  write("epp.yaml",
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"
        "plugins: [{type: queue-scorer}]\n");
  const std::string named = "log: {level: debug}\nschedulingConfigFile: epp.yaml\n";
  EXPECT_NE(refused(named, "log: {level: debug}\n").find("scheduling: was set at pickd.yaml:2"),
            std::string::npos);
  const std::string whole = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";
  EXPECT_EQ(refused(named, whole + "plugins: [{type: queue-scorer}]\n"), "");
  EXPECT_NE(refused(whole, "log: {level: debug}\n").find("scheduling: was set at pickd.yaml:1"),
            std::string::npos);
}

TEST_F(LostSections, WithoutAFileThereIsNothingToLose) {
  const auto running = load(kWhole);
  const auto none = load_config("", {});
  ASSERT_TRUE(running.ok() && none.ok());
  EXPECT_TRUE(check_kept(running.value().sections, none.value()).ok());
}

}  // namespace
}  // namespace pickd::config

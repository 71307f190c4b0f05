// The environment: wins over the file, by the same rules, and has no room for typos.
#include "daemon/config/settings.hpp"
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigEnvironment : public ConfigFiles {};

TEST_F(ConfigEnvironment, WinsOverTheFile) {
  const auto loaded = load("state: {size_mib: 64, ttl: 1h}\n", {"PICKD_STATE_SIZE_MIB=512"});
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().config.state.size_mib, 512U);
  EXPECT_EQ(loaded.value().config.state.ttl_ms, 3'600'000U);
  EXPECT_EQ(loaded.value().origins.at("state.size_mib").text(), "PICKD_STATE_SIZE_MIB");
  EXPECT_EQ(without_directory(loaded.value().origins.at("state.ttl").text()), "pickd.yaml:1");
}

TEST_F(ConfigEnvironment, SetsEverySingleValueOfTheTable) {
  for (const Setting& setting : settings()) {
    if (setting.is_list() || setting.absent.empty()) continue;
    const auto loaded = load_config("", {environment_name(setting.key) + "=" + setting.absent});
    ASSERT_TRUE(loaded.ok()) << loaded.error().text;
    EXPECT_EQ(loaded.value().origins.count(setting.key), 1U) << setting.key;
  }
  EXPECT_EQ(environment_name("schedulingConfigFile"), "PICKD_SCHEDULING_CONFIG_FILE");
}

TEST_F(ConfigEnvironment, FollowsTheRulesOfTheFile) {
  EXPECT_EQ(bad("", {"PICKD_STATE_TTL=30"}),
            "PICKD_STATE_TTL: state.ttl: must be a duration from 1s to 12h with its unit (us, ms, "
            "s, min or h): 30s or 30ms?, is `30`");
  EXPECT_EQ(bad("", {"PICKD_WORKERS_COUNT="}),
            "PICKD_WORKERS_COUNT: workers.count: must be a whole number from 1 to 32 (threads), is "
            "empty");
}

TEST_F(ConfigEnvironment, RefusesVariablesThatAreNoSettings) {
  EXPECT_EQ(bad("", {"PICKD_STATE_SIZE_MB=1"}),
            "PICKD_STATE_SIZE_MB: no such setting (did you mean `PICKD_STATE_SIZE_MIB`?)");
  EXPECT_EQ(good("", {"HOME=/", "NOTPICKD_X=1", "PICK=1", "PICKD=1"}), Config());
}

TEST_F(ConfigEnvironment, SetsNoLists) {
  EXPECT_EQ(
      bad("", {"PICKD_LISTEN_ADMIN_UIDS=0"}),
      "PICKD_LISTEN_ADMIN_UIDS: listen.admin_uids: is a list; lists are set in the file only");
}

TEST_F(ConfigEnvironment, TakesTheSocketByTheNameThatClientsUse) {
  EXPECT_EQ(good("listen: {socket: /a}\n", {"PICKD_SOCKET=/b"}).listen.socket, "/b");
  EXPECT_EQ(good("", {"PICKD_SOCKET=/b", "PICKD_LISTEN_SOCKET=/b"}).listen.socket, "/b");
  EXPECT_EQ(bad("", {"PICKD_SOCKET=/b", "PICKD_LISTEN_SOCKET=/c"}),
            "PICKD_LISTEN_SOCKET: listen.socket: says something else than PICKD_SOCKET; set one");
}

TEST_F(ConfigEnvironment, NamesTheFileWhenTheCallerDoesNot) {
  const std::string file = write("other.yaml", "state: {size_mib: 99}\n");
  const auto loaded = load_config("", {"PICKD_CONFIG=" + file});
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().config.state.size_mib, 99U);
  EXPECT_EQ(good("state: {size_mib: 8}\n", {"PICKD_CONFIG=" + file}).state.size_mib, 8U)
      << "a file given by name comes first";
}

TEST_F(ConfigEnvironment, PutsTheStateIntoTheRuntimeDirectory) {
  EXPECT_EQ(good("", {"RUNTIME_DIRECTORY=/run/x:/run/y"}).state.path, "/run/x/state");
  EXPECT_EQ(good("state: {path: /s}\n", {"RUNTIME_DIRECTORY=/run/x"}).state.path, "/s");
  EXPECT_EQ(good("", {"RUNTIME_DIRECTORY=/run/x", "PICKD_STATE_PATH=/e"}).state.path, "/e");
}

TEST_F(ConfigEnvironment, AProfileReplacesTheSchedulingOfTheFile) {
  const std::string yaml = "scheduling: {plugins: [{type: a}]}\n";
  const Config config = good(yaml, {"PICKD_SCHEDULING_PROFILE=round-robin"});
  EXPECT_EQ(config.scheduling.profile, "round-robin");
  EXPECT_TRUE(config.scheduling.plugins.empty());
  EXPECT_EQ(
      bad(yaml, {"PICKD_SCHEDULING_PROFILE=x", "PICKD_SCHEDULING_CONFIG_FILE=/y"}),
      "PICKD_SCHEDULING_PROFILE: scheduling.profile: and PICKD_SCHEDULING_CONFIG_FILE are both "
      "set; set one");
}

}  // namespace
}  // namespace pickd::config

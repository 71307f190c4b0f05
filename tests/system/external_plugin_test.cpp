// A plugin library of an operator's in a real daemon: refused before it serves, switched off when
// it goes wrong.
#include <fstream>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

std::string scheduling(const std::string& library, const std::string& config) {
  return "scheduling:\n"
         "  plugins:\n"
         "  - {type: external-scorer, name: mine, parameters: {path: " PICKD_BINARY_DIR "/lib/" +
         library + ".so, config: \"" + config +
         "\", failures_max: 4}}\n"
         "  schedulingProfiles:\n"
         "  - {name: default, plugins: [{pluginRef: mine}]}\n";
}

TEST(SystemExternalPlugins, AreSwitchedOffWithAWordInTheLogAndPicksGoOn) {
  Daemon daemon({.rest = scheduling("odd", "nan")});
  const Client client(daemon);
  const Result result;
  for (int turn = 0; turn < 20; ++turn)
    ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), 0);
  EXPECT_TRUE(eventually([&] { return daemon.counter("external_plugins_off") == 1; }));
  EXPECT_EQ(daemon.counter("external_plugin_failures"), 4U);
  EXPECT_EQ(daemon.counter("plugin_failures"), 4U);
  EXPECT_EQ(daemon.counter("picks"), 20U);
  EXPECT_TRUE(eventually([&] {
    return daemon.log().find("plugin mine (" PICKD_BINARY_DIR "/lib/odd.so) is off") !=
           std::string::npos;
  }));
}

TEST(SystemExternalPlugins, ThatCrashAreRefusedAndTheOldConfigurationStays) {
  Daemon daemon({.rest = "scheduling: {profile: epp-default}\n"});
  std::string text;
  {
    std::ifstream file(daemon.config());
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string old = "scheduling: {profile: epp-default}\n";
  const std::size_t at = text.find(old);
  ASSERT_NE(at, std::string::npos) << text;
  const std::string bad =
      text.substr(0, at) + scheduling("crashes_at_load", "") + text.substr(at + old.size());
  const std::string path = daemon.directory() + "/bad.yaml";
  std::ofstream(path) << bad;
  const Ended checked = run("pickd", {"--check-config", path});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_NE(checked.errors.find("crashed (Segmentation fault) when it was loaded"),
            std::string::npos)
      << checked.errors;
  std::ofstream(daemon.config()) << bad;
  EXPECT_TRUE(eventually([&] { return daemon.counter("config_reload_failures") >= 1; }));
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request(prompt_of(1024)), result), 0);
}

}  // namespace
}  // namespace pickd::systests

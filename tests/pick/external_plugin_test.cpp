// External plugins: the example, libraries that are refused, and libraries that go wrong at work.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

const std::string kLibraries = PICKD_BINARY_DIR "/lib/";

std::string with(const std::string& library, const std::string& config,
                 const std::string& more = "") {
  return "{path: " + kLibraries + library + ".so, config: \"" + config + "\"" + more + "}";
}
RigOptions using_plugins(const std::vector<Use>& uses) {
  RigOptions options;
  options.scheduling = scheduling(uses);
  return options;
}
// Of a configuration with this one plugin: what is wrong with it.
std::string error_of(const Use& use) {
  const auto made = Schedule::make(scheduling({use}));
  return made ? "" : made.error().text;
}

void set_kv_use(PickRig& rig, const std::string& endpoint, std::uint32_t ppm) {
  rig.record(endpoint).kv_use_ppm.store(ppm);
}

TEST(ExternalPlugins, TheExampleScoresByItsOwnRule) {
  PickRig rig(using_plugins({{"external-scorer", 4.0, with("example_plugin", "")}}));
  for (const char* name : {"e1", "e2", "e3"}) {
    auto spec = rig.spec(name);
    spec.labels = {{"zone", std::string_view(name) == "e2" ? "near" : "far"}};
    rig.add(spec);
  }
  rig.tick += 10;
  set_kv_use(rig, "e1", 200'000);
  set_kv_use(rig, "e2", 600'000);
  const Attribute zone[] = {{"X-Zone", "near"}};
  auto request = rig.request();
  request.attributes = zone;
  const auto scores = rig.scores(request);
  // 4 x 0.5 (1 - 0.2); 4 x (0.5 (1 - 0.6) + 0.5); nothing where it is unknown.
  EXPECT_FLOAT_EQ(scores.at("e1"), 1.6F);
  EXPECT_FLOAT_EQ(scores.at("e2"), 2.8F);
  EXPECT_FLOAT_EQ(scores.at("e3"), 0.0F);
}

TEST(ExternalPlugins, TheExampleDropsWhatItsConfigSays) {
  PickRig rig(using_plugins({{"external-filter", std::nullopt, with("example_plugin", "0.5")}}));
  rig.add_endpoints(3);
  set_kv_use(rig, "e1", 600'000);
  set_kv_use(rig, "e2", 400'000);
  set_kv_use(rig, "e3", 700'000);
  EXPECT_EQ(rig.winner(rig.request()), "e2");
  set_kv_use(rig, "e2", 900'000);
  EXPECT_EQ(rig.pick_only(rig.request()).count, 3U) << "all are over: it keeps all";
}

TEST(ExternalPlugins, ThatAreWrongInTheConfigurationAreRefusedInWords) {
  EXPECT_NE(error_of({"external-scorer"}).find("path"), std::string::npos);
  EXPECT_NE(error_of({"external-scorer", 1.0, "{path: /nowhere/x.so}"})
                .find("/nowhere/x.so cannot be opened: No such file"),
            std::string::npos);
  EXPECT_NE(error_of({"external-scorer", 1.0, "{path: /tmp}"}).find("/tmp is no file"),
            std::string::npos);
  EXPECT_NE(error_of({"external-scorer", 1.0, with("example_plugin", "9")})
                .find("refuses its config: \"9\" is no share of a KV cache"),
            std::string::npos);
  // Its words go to a terminal.
  const std::string hostile = error_of({"external-scorer", 1.0, with("odd", "colours")});
  EXPECT_NE(hostile.find("refuses its config: \\x1b[31mred\\x0aforged\\x7f"), std::string::npos)
      << hostile;
}

TEST(ExternalPlugins, ThatOthersMayWriteOrThatAreNoLibraryAreRefused) {
  char path[] = "/tmp/pickd-plugin-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ::close(file);
  const auto error = [&path] {
    return error_of({"external-scorer", 1.0, "{path: " + std::string(path) + "}"});
  };
  EXPECT_NE(error().find("has 0 bytes"), std::string::npos) << error();
  std::ofstream(path) << "no library at all";
  EXPECT_NE(error().find("file too short"), std::string::npos) << error();
  // Half of one, as while it is being copied there.
  const std::filesystem::path whole = kLibraries + "example_plugin.so";
  std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(path, std::filesystem::file_size(whole) / 2);
  EXPECT_NE(error(), "");
  ::chmod(path, 0666);
  EXPECT_NE(error().find("may be written by others"), std::string::npos) << error();
  if (::geteuid() == 0) {
    ::chmod(path, 0644);
    ASSERT_EQ(::chown(path, 65534, 65534), 0);
    EXPECT_NE(error().find("belongs to uid 65534"), std::string::npos) << error();
  }
  ::unlink(path);
}

TEST(ExternalPlugins, ThatCrashOrHangAreTriedOutInAChildAndRefused) {
  const std::pair<const char*, const char*> libraries[] = {
      {"crashes_at_load", "crashed (Segmentation fault) when it was loaded"},
      {"hangs_at_load", "did not come back within 2 s when it was loaded"},
      {"exports_nothing", "exports no pickd_plugin_describe()"},
      {"knows_no_abi", "does not know this version of plugin.h"},
      {"crashes_in_create", "crashed (Aborted) when it was made an instance of"},
      {"crashes_in_call", "crashed (Segmentation fault) when it was called"},
      {"has_no_score", "has no score(), and is named as an external-scorer"},
      {"reads_unknown_columns", "reads columns that this pickd does not have"},
      {"exits_in_call", "ended its process when it was called"},
  };
  for (const auto& [library, words] : libraries) {
    const std::string error = error_of({"external-scorer", 1.0, with(library, "")});
    EXPECT_NE(error.find(words), std::string::npos) << library << ": " << error;
  }
  EXPECT_EQ(error_of({"external-filter", std::nullopt, with("has_no_score", "")}), "");
}

// Whether the plugin of a rig's schedule is off.
bool off(PickRig& rig) { return rig.core().schedule().externals().at(0)->health().off.load(); }

TEST(ExternalPlugins, ThatGiveNoNumberAreLeftOutAndSwitchedOff) {
  for (const char* mode : {"nan", "fails"}) {
    PickRig rig(using_plugins({{"external-scorer", 100.0, with("odd", mode, ", failures_max: 5")},
                               {"active-request-scorer", 1.0}}));
    rig.add_endpoints(2);
    rig.set_load("e1", 1, 0);
    for (int turn = 0; turn < 50; ++turn)
      EXPECT_EQ(rig.served(rig.request()), "e2") << "the other scorer decides";
    EXPECT_EQ(rig.counted(abi::Counter::plugin_failures), 5U) << mode;
    EXPECT_TRUE(off(rig));
    EXPECT_EQ(rig.core().schedule().externals()[0]->health().failures.load(), 5U);
    EXPECT_EQ(rig.core().schedule().externals()[0]->health().calls.load(), 5U)
        << "it is not called any more";
  }
}

TEST(ExternalPlugins, AreHeldToTheRangeOfScores) {
  for (const char* mode : {"infinite", "out-of-range"}) {
    PickRig rig(using_plugins({{"external-scorer", 2.0, with("odd", mode)}}));
    rig.add_endpoints(2);
    const auto scores = rig.scores(rig.request());
    EXPECT_FLOAT_EQ(scores.at("e1"), 2.0F) << mode;
    EXPECT_FLOAT_EQ(scores.at("e2"), 0.0F) << mode;
    EXPECT_FALSE(off(rig));
  }
}

TEST(ExternalPlugins, ThatTakeTooLongAreSwitchedOff) {
  for (const char* type : {"external-scorer", "external-filter"}) {
    PickRig rig(using_plugins({{type, std::nullopt, with("odd", "slow", ", failures_max: 3")}}));
    rig.add_endpoints(2);
    for (int turn = 0; turn < 20; ++turn) rig.pick_only(rig.request());
    EXPECT_TRUE(off(rig)) << type;
    EXPECT_EQ(rig.core().schedule().externals()[0]->health().slow.load(), 3U) << type;
    EXPECT_EQ(rig.pick_only(rig.request()).count, 2U) << "off: everybody is kept";
  }
}

TEST(ExternalPlugins, ThatFailNowAndThenStay) {
  // Every 300th call: at most four in 1,024.
  PickRig rig(using_plugins({{"external-scorer", 1.0,
                              with("odd", "sometimes", ", failures_max: 5, budget_us: 1000000")}}));
  rig.add_endpoints(2);
  for (int turn = 0; turn < 5000; ++turn) rig.pick_only(rig.request());
  EXPECT_EQ(rig.core().schedule().externals()[0]->health().failures.load(), 16U);
  EXPECT_FALSE(off(rig));
}

TEST(ExternalPlugins, FiltersThatFailKeepEverybodyAndThoseThatWorkMayDropAll) {
  PickRig fails(using_plugins({{"external-filter", std::nullopt, with("odd", "fails")}}));
  fails.add_endpoints(2);
  EXPECT_EQ(fails.pick_only(fails.request()).count, 2U);
  PickRig drops(using_plugins({{"external-filter", std::nullopt, with("odd", "drops-all")}}));
  drops.add_endpoints(2);
  EXPECT_EQ(drops.pick_only(drops.request()).status, -EBUSY);
}

}  // namespace
}  // namespace pickd::pick::test

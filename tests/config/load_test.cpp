// Plain settings of the file: taken when right, refused with line, key and what would be right when
// not.
#include "daemon/config/settings.hpp"
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigLoad : public ConfigFiles {};

TEST_F(ConfigLoad, NoFileAtAllIsValidAndGivesTheDefaults) {
  const auto loaded = load_config("", {"HOME=/root"});
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  const Config& config = loaded.value().config;
  EXPECT_EQ(config.listen.socket, "/run/pickd/pickd.sock");
  EXPECT_EQ(config.listen.mode, 0660U);
  EXPECT_FALSE(config.listen.admin_uids.has_value());
  EXPECT_EQ(config.state.path, "/run/pickd/state");
  EXPECT_EQ(config.state.size_mib, 256U);
  EXPECT_EQ(config.state.block_tokens, 64U);
  EXPECT_EQ(config.state.ttl_ms, 30U * 60 * 1000);
  EXPECT_EQ(config.state.capacity_tokens, 500'000U);
  EXPECT_EQ(config.workers.count, 1U);
  EXPECT_EQ(config.workers.spin_us, 50U);
  EXPECT_EQ(config.reservations.max, 65536U);
  EXPECT_EQ(config.reservations.lease_ms, 600'000U);
  EXPECT_EQ(config.log.level, "info");
  EXPECT_TRUE(config.endpoints.empty());
  EXPECT_TRUE(config.scheduling.plugins.empty());
  EXPECT_TRUE(loaded.value().origins.empty());
}

TEST_F(ConfigLoad, EveryDefaultOfTheTableKeepsItsOwnRules) {
  for (const Setting& setting : settings()) {
    if (setting.is_list()) continue;
    Config config;
    const auto done = set_from_text(setting, setting.absent, config);
    EXPECT_TRUE(done.ok()) << setting.key << " " << done.error().text;
  }
}

TEST_F(ConfigLoad, TakesEverySettingOfTheTable) {
  const Config config = good(R"(
listen:
  socket: /tmp/p.sock
  mode: 0600
  group: gateways
  admin_uids: [0, 1000]
  allowed_uids: [33]
  clients_max: 10
  channels_max: 20
  channels_per_client_max: 5
  keys_max: 4096
state:
  path: /tmp/state
  size_mib: 512
  block_tokens: 16
  ttl: 1h30min
  capacity_tokens: 0
  prefix_blocks_min: 2
  prefix_blocks_max: 100
  endpoints_max: 64
workers: {count: 4, spin: 50us, busy_poll: true, cpus: [2, 3]}
reservations: {max: 1000, lease: 45s}
log: {level: debug}
scheduling: {profile: epp-default}
)");
  EXPECT_EQ(config.listen.socket, "/tmp/p.sock");
  EXPECT_EQ(config.listen.mode, 0600U);
  EXPECT_EQ(config.listen.group, "gateways");
  EXPECT_EQ(config.listen.admin_uids, (std::vector<std::uint32_t>{0, 1000}));
  EXPECT_EQ(config.listen.allowed_uids, (std::vector<std::uint32_t>{33}));
  EXPECT_EQ(config.listen.clients_max, 10U);
  EXPECT_EQ(config.listen.channels_max, 20U);
  EXPECT_EQ(config.listen.channels_per_client_max, 5U);
  EXPECT_EQ(config.listen.keys_max, 4096U);
  EXPECT_EQ(config.state.path, "/tmp/state");
  EXPECT_EQ(config.state.size_mib, 512U);
  EXPECT_EQ(config.state.block_tokens, 16U);
  EXPECT_EQ(config.state.ttl_ms, 90U * 60 * 1000);
  EXPECT_EQ(config.state.capacity_tokens, 0U);
  EXPECT_EQ(config.state.prefix_blocks_min, 2U);
  EXPECT_EQ(config.state.prefix_blocks_max, 100U);
  EXPECT_EQ(config.state.endpoints_max, 64U);
  EXPECT_EQ(config.workers.count, 4U);
  EXPECT_EQ(config.workers.spin_us, 50U);
  EXPECT_TRUE(config.workers.busy_poll);
  EXPECT_EQ(config.workers.cpus, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(config.reservations.max, 1024U) << "rounded up to a power of two";
  EXPECT_EQ(config.reservations.lease_ms, 45'000U);
  EXPECT_EQ(config.log.level, "debug");
  EXPECT_EQ(config.scheduling.profile, "epp-default");
}

TEST_F(ConfigLoad, AnEmptyFileAndAnEmptySectionChangeNothing) {
  EXPECT_EQ(good(""), Config());
  EXPECT_EQ(good("# nothing\n"), Config());
  EXPECT_EQ(good("state:\n#  ttl: 1h\nendpoints:\nscheduling:\n"), Config());
}

TEST_F(ConfigLoad, AnEmptyListOfAdminsIsNotTheDefault) {
  const Config config = good("listen: {admin_uids: []}\n");
  ASSERT_TRUE(config.listen.admin_uids.has_value());
  EXPECT_TRUE(config.listen.admin_uids->empty());
}

TEST_F(ConfigLoad, RefusesUnknownKeysWithTheNearestKnownOne) {
  EXPECT_EQ(bad("state:\n  size_mb: 5\n"),
            "pickd.yaml:2: state.size_mb: unknown key (did you mean `size_mib`?)");
  EXPECT_EQ(bad("\nstaet:\n  ttl: 1h\n"),
            "pickd.yaml:2: staet: unknown key (did you mean `state`?)");
  EXPECT_EQ(bad("ttl: 1h\n"), "pickd.yaml:1: ttl: unknown key (did you mean `state.ttl`?)");
  EXPECT_EQ(bad("log: {ttl: 1h}\n"),
            "pickd.yaml:1: log.ttl: unknown key (did you mean `state.ttl`?)");
  EXPECT_EQ(bad("log: {format: json}\n"), "pickd.yaml:1: log.format: unknown key; known: level");
}

TEST_F(ConfigLoad, ReadsWhatIsLearnedOfLatencies) {
  const LatencyConfig absent = good("").latency;
  EXPECT_TRUE(absent.enabled);
  EXPECT_EQ(absent.memory_samples, 500U);
  EXPECT_EQ(absent.samples_min, 20U);
  EXPECT_EQ(absent.output_tokens, 200U);
  EXPECT_EQ(absent.percentile, 90U);
  const LatencyConfig given = good(
                                  "latency: {enabled: false, memory_samples: 50, samples_min: 1, "
                                  "output_tokens: 1000, percentile: 99}\n")
                                  .latency;
  EXPECT_FALSE(given.enabled);
  EXPECT_EQ(given.memory_samples, 50U);
  EXPECT_EQ(given.samples_min, 1U);
  EXPECT_EQ(given.output_tokens, 1000U);
  EXPECT_EQ(given.percentile, 99U);
  for (const char* wrong :
       {"memory_samples: 49", "memory_samples: 100001", "samples_min: 0", "output_tokens: 0",
        "percentile: 49", "percentile: 100", "percentile: 99.5", "enabled: 1", "model: xgboost"}) {
    EXPECT_NE(bad("latency: {" + std::string(wrong) + "}\n").find("pickd.yaml:1: latency."),
              std::string::npos)
        << wrong;
  }
}

struct Mistake {
  const char* yaml;
  const char* error;  // after "pickd.yaml:"
};

TEST_F(ConfigLoad, RefusesWrongTypesAndRangesWithWhatWouldBeRight) {
  const Mistake mistakes[] = {
      {"state:\n  size_mib: big\n",
       "2: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is `big`"},
      {"state: {size_mib: 7}\n",
       "1: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is `7`"},
      {"state: {size_mib: 1048577}\n",
       "1: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is `1048577`"},
      {"state: {size_mib: 12.5}\n",
       "1: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is `12.5`"},
      {"state: {size_mib: .nan}\n",
       "1: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is `.nan`"},
      {"state: {size_mib: .inf}\n",
       "1: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is `.inf`"},
      {"state: {size_mib: 99999999999999999999999}\n",
       "1: state.size_mib: must be a whole number from 8 to 1048576 (MiB), is "
       "`99999999999999999999999`"},
      {"state: {size_mib: \"512\"}\n",
       "1: state.size_mib: is text, `512`; write the number without quotes"},
      {"state: {size_mib: [1]}\n",
       "1: state.size_mib: must be a single value (8 to 1048576 MiB), is a list"},
      {"state: {size_mib: {a: 1}}\n",
       "1: state.size_mib: must be a single value (8 to 1048576 MiB), is a map"},
      {"state:\n  size_mib:\n",
       "2: state.size_mib: has no value; leave the key out for the default"},
      {"state: [1]\n", "1: state: must be a map of settings (`key: value`)"},
      {"- state\n", "1: must be a map of sections, such as `state:`"},
      {"state: {capacity_tokens: 5}\n",
       "1: state.capacity_tokens: must be 0 or a whole number from 1024 to 1000000000 (tokens), is "
       "`5`"},
      {"state: {path: state}\n",
       "1: state.path: must be an absolute path, starting with /, is `state`"},
      {"state: {path: \"/a\\nb\"}\n",
       "1: state.path: must not hold control characters, is `/a\\x0ab`"},
      {"listen: {mode: 660}\n",
       "1: listen.mode: must be permission bits in octal with a leading 0, from 0000 to 0777, such "
       "as 0660, is `660`"},
      {"listen: {mode: 0888}\n",
       "1: listen.mode: must be permission bits in octal with a leading 0, from 0000 to 0777, such "
       "as 0660, is `0888`"},
      {"listen: {admin_uids: root}\n",
       "1: listen.admin_uids: must be a list of at most 1024 numbers, such as [0, 1000]"},
      {"listen:\n  admin_uids:\n    - 0\n    - root\n",
       "4: listen.admin_uids: must be a whole number from 0 to 4294967294, is `root`"},
      {"workers: {busy_poll: yes}\n", "1: workers.busy_poll: must be true or false, is `yes`"},
      {"workers: {count: 33}\n",
       "1: workers.count: must be a whole number from 1 to 32 (threads), is `33`"},
      {"workers: {spin: 11ms}\n", "1: workers.spin: must be a duration from 0s to 10ms, is `11ms`"},
      {"log: {level: loud}\n",
       "1: log.level: must be one of trace, debug, info, warn, error, is `loud`"},
      {"state: {prefix_blocks_min: 10, prefix_blocks_max: 9}\n",
       "1: state.prefix_blocks_max: prefix_blocks_max, 9, must not be less than "
       "prefix_blocks_min, 10"},
      {"listen: {socket: /run/pickd/state}\n",
       "1: listen.socket: must not be the path of the state file"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(bad(mistake.yaml), std::string("pickd.yaml:") + mistake.error) << mistake.yaml;
  }
}

// Field case 107: zero, negative or tiny settings.
TEST_F(ConfigLoad, RefusesZeroNegativeAndHugeBlockSizesAndTtls) {
  const std::string block = "must be a whole number from 8 to 1024 (tokens), is `";
  for (const std::string value : {"0", "-1", "2147483648", "1"}) {
    EXPECT_EQ(bad("state:\n  block_tokens: " + value + "\n"),
              "pickd.yaml:2: state.block_tokens: " + block + value + "`");
  }
  EXPECT_EQ(bad("state: {block_tokens: 10}\n"),
            "pickd.yaml:1: state.block_tokens: must be a multiple of 4, is `10`");
  EXPECT_EQ(bad("state: {ttl: -5s}\n"),
            "pickd.yaml:1: state.ttl: must be a duration from 1s to 12h, such as 500ms, 45s, 30min "
            "or 1h, is `-5s`");
  EXPECT_EQ(bad("state: {ttl: 0s}\n"),
            "pickd.yaml:1: state.ttl: must be a duration from 1s to 12h, is `0s`");
  EXPECT_EQ(bad("state: {ttl: 1ms}\n"),
            "pickd.yaml:1: state.ttl: must be a duration from 1s to 12h, is `1ms`");
  EXPECT_EQ(bad("state: {ttl: 13h}\n"),
            "pickd.yaml:1: state.ttl: must be a duration from 1s to 12h, is `13h`");
  EXPECT_EQ(bad("state: {size_mib: -1}\n").substr(0, 31), "pickd.yaml:1: state.size_mib: m");
}

TEST_F(ConfigLoad, ABareNumberIsNoDuration) {
  EXPECT_EQ(bad("state:\n  ttl: 30\n"),
            "pickd.yaml:2: state.ttl: must be a duration from 1s to 12h with its unit (us, ms, s, "
            "min or h): 30s or 30ms?, is `30`");
}

TEST_F(ConfigLoad, ListsAllMistakesOfAFileAtOnce) {
  EXPECT_EQ(
      bad("state:\n  ttl: 30\n  size_mib: 1\nlog:\n  level: x\nfoo: 1\n", {"PICKD_STATE_BAR=1"})
          .find("pickd.yaml:2"),
      0U);
  const std::string text =
      bad("state:\n  ttl: x\n  size_mib: 1\nlog:\n  level: x\n", {"PICKD_X_Y=1"});
  EXPECT_NE(text.find("pickd.yaml:2: state.ttl: "), std::string::npos);
  EXPECT_NE(text.find("\npickd.yaml:3: state.size_mib: "), std::string::npos);
  EXPECT_NE(text.find("\npickd.yaml:5: log.level: "), std::string::npos);
  EXPECT_NE(text.find("\nPICKD_X_Y: "), std::string::npos);
}

TEST_F(ConfigLoad, ShowsTwentyMistakesAndCountsTheRest) {
  std::string yaml = "log:\n";
  for (int i = 0; i < 27; ++i) yaml += "  wrong" + std::to_string(i) + ": 1\n";
  const std::string text = bad(yaml);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20);
  EXPECT_EQ(text.substr(text.rfind('\n')), "\nand 7 more");
}

TEST_F(ConfigLoad, SaysWhyAFileCannotBeRead) {
  const auto missing = load_config("/nonexistent/pickd.yaml", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, -ENOENT);
  EXPECT_EQ(missing.error().text, "/nonexistent/pickd.yaml: No such file or directory");
  const auto directory = load_config("/tmp", {});
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().text, "/tmp: not a regular file");
}

}  // namespace
}  // namespace pickd::config

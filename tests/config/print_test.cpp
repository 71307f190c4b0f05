// What --print-config shows, and the manual.
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "daemon/config/sections.hpp"
#include "daemon/config/settings.hpp"
#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

class ConfigPrint : public ConfigFiles {};

const char* const kEverything = R"(
listen: {socket: "/tmp/a b # c", mode: 0600, admin_uids: [], allowed_uids: [1, 2], group: "it's"}
state: {ttl: 90s, size_mib: 64, capacity_tokens: 0}
workers: {spin: 25us, cpus: [1]}
reservations: {max: 100}
scrape: {interval: 250ms, path: "", engines: [{name: "own: one", waiting: 'w{a="b, c"}'}]}
endpoints:
  - {name: "we\"ird: name", address: "h:1", role: encode,
     models: ["a, b", "null"], labels: {"k: 1": "#v"}}
  - {name: b, address: "http://x", capacity_tokens: 2048,
     metrics_url: "https://x/m?a=b", engine: "e: e", rank: 0}
scheduling:
  plugins:
    - type: prefix-cache-scorer
      parameters: {a: 1, b: "1", c: [x, "y, z", {d: ~}], e: two words, "f: g": .5}
    - {type: queue-scorer, name: q}
  schedulingProfiles:
    - name: default
      plugins:
        - {pluginRef: prefix-cache-scorer, weight: 0.1}
        - {pluginRef: q, weight: -1e-9}
        - {pluginRef: q}
)";

TEST_F(ConfigPrint, LoadsAgainToTheSame) {
  const auto loaded = load(kEverything, {"PICKD_STATE_BLOCK_TOKENS=128"});
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  const std::string printed = print_config(loaded.value());
  const auto again = load_config(write("again.yaml", printed), {});
  ASSERT_TRUE(again.ok()) << again.error().text << "\n" << printed;
  EXPECT_EQ(again.value().config, loaded.value().config) << printed;
  EXPECT_EQ(again.value().config.state.block_tokens, 128U);
  EXPECT_EQ(again.value().config.endpoints[0].name, "we\"ird: name");
}

TEST_F(ConfigPrint, LoadsTheDefaultsAgainToTheSame) {
  const auto loaded = load_config("", {});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(good(print_config(loaded.value())), Config());
}

TEST_F(ConfigPrint, SaysWhereEachValueCameFrom) {
  const auto loaded = load("state:\n  ttl: 90s\n", {"PICKD_STATE_SIZE_MIB=64"});
  ASSERT_TRUE(loaded.ok());
  const std::string printed = without_directory(print_config(loaded.value()));
  EXPECT_NE(printed.find("\n  ttl: 90s  # pickd.yaml:2\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("\n  size_mib: 64  # PICKD_STATE_SIZE_MIB\n"), std::string::npos);
  EXPECT_NE(printed.find("\n  block_tokens: 64  # default\n"), std::string::npos);
  EXPECT_NE(printed.find("\n  # admin_uids: root and the daemon's own  # default\n"),
            std::string::npos);
  EXPECT_NE(printed.find("\n  mode: 0660  # default\n"), std::string::npos);
}

TEST_F(ConfigPrint, ShowsWhatAFileOfSchedulingSaid) {
  write("epp.yaml",
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: a\n");
  const auto loaded = load("schedulingConfigFile: epp.yaml\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  const std::string printed = print_config(loaded.value());
  EXPECT_NE(without_directory(printed).find("- type: \"a\"  # epp.yaml:4"), std::string::npos)
      << printed;
  EXPECT_EQ(good(printed), loaded.value().config);
}

TEST_F(ConfigPrint, ALineBreakInAFilesNameDoesNotEndTheComment) {
  const auto loaded = load_config(write("a\nb: 1", "state: {ttl: 90s}\n"), {});
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(good(print_config(loaded.value())), loaded.value().config);
}

TEST_F(ConfigPrint, EveryKeyOfTheManualsTablesIsRead) {
  const auto text = [](const std::vector<ItemKey>& keys) {
    std::string out;
    for (const ItemKey& key : keys) out += (out.empty() ? "" : ", ") + key.name + ": {}";
    return "{" + out + "}";
  };
  // Wrong values on purpose: a key that is not read would be called unknown.
  EXPECT_EQ(bad("endpoints: [" + text(endpoint_keys()) + "]\n").find("unknown"), std::string::npos);
  EXPECT_EQ(bad("pools: [" + text(pool_keys()) + "]\n").find("unknown"), std::string::npos);
  EXPECT_EQ(bad("scrape: {engines: [" + text(engine_keys()) + "]}\n").find("unknown"),
            std::string::npos);
  EXPECT_EQ(bad("scheduling: " + text(scheduling_keys()) + "\n").find("unknown"),
            std::string::npos);
}

TEST(ConfigurationManual, IsWhatTheTablesSay) {
  const std::string path = std::string(PICKD_SOURCE_DIR) + "/docs/configuration.md";
  if (std::getenv("REGENERATE_MANUAL") != nullptr) std::ofstream(path) << configuration_manual();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), configuration_manual()) << "run ./dev manual and commit " << path;
}

TEST(ConfigurationManual, IsTheFileInEtcToo) {
  const std::string path = std::string(PICKD_SOURCE_DIR) + "/packaging/pickd.yaml";
  if (std::getenv("REGENERATE_MANUAL") != nullptr) std::ofstream(path) << example_file();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), example_file()) << "run ./dev manual and commit " << path;
}

TEST_F(ConfigPrint, TheFileInEtcChangesNothingUntilItIsUncommented) {
  EXPECT_EQ(good(example_file()), Config{});
  // Each setting with its comment sign taken away has the default that it says.
  std::istringstream lines(example_file());
  std::string section;
  int uncommented = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool heads = line.size() > 2 && line[0] == '#' && std::isalpha(line[1]) != 0;
    if (heads && line.back() == ':') section = line.substr(1);
    if (line.rfind("#  ", 0) != 0 || line.size() < 5 || std::isalpha(line[3]) == 0) continue;
    if (section == "scheduling:" || section == "endpoints:" || section == "pools:") continue;
    if (line.find(" []") != std::string::npos) continue;
    EXPECT_EQ(good(section + "\n" + line.substr(1) + "\n"), Config{}) << section << line;
    ++uncommented;
  }
  EXPECT_GT(uncommented, 30);
}

TEST(ConfigurationManual, ItsExampleLoads) {
  const std::string manual = configuration_manual();
  const std::size_t start = manual.find("```yaml\n") + 8;
  const auto tree = parse_tree(manual.substr(start, manual.find("```", start) - start), "f");
  ASSERT_TRUE(tree.ok()) << tree.error().text;
}

}  // namespace
}  // namespace pickd::config

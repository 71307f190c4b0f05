// docs/plugins.md and docs/scheduling.schema.json are what the registry says.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "daemon/pick/manual.hpp"
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

void expect_file(const std::string& name, const std::string& made) {
  const std::string path = std::string(PICKD_SOURCE_DIR) + "/docs/" + name;
  if (std::getenv("REGENERATE_MANUAL") != nullptr) std::ofstream(path) << made;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  // Not EXPECT_EQ: it would print both of them.
  EXPECT_TRUE(text.str() == made) << "run ./dev manual and commit " << path;
}

TEST(PluginsManual, IsTheFileInDocs) { expect_file("plugins.md", plugins_manual()); }
TEST(SchedulingSchema, IsTheFileInDocs) {
  expect_file("scheduling.schema.json", scheduling_schema());
}

TEST(PluginsManual, HoldsEveryPluginAndParameter) {
  const std::string manual = plugins_manual();
  for (const PluginInfo& info : plugin_infos()) {
    EXPECT_NE(manual.find("### " + std::string(info.type) + "\n"), std::string::npos) << info.type;
    for (const ParameterInfo& parameter : info.parameters) {
      EXPECT_NE(manual.find("`" + std::string(parameter.name) + "`"), std::string::npos)
          << info.type << " " << parameter.name;
      EXPECT_FALSE(parameter.help.empty()) << info.type << " " << parameter.name;
    }
  }
}

TEST(SchedulingSchema, IsJsonThatKnowsEveryPlugin) {
  const auto schema = nlohmann::json::parse(scheduling_schema());
  const auto& kinds = schema.at("properties").at("plugins").at("items").at("oneOf");
  ASSERT_EQ(kinds.size(), plugin_infos().size());
  for (std::size_t at = 0; at < kinds.size(); ++at) {
    EXPECT_EQ(kinds[at].at("properties").at("type").at("const").get<std::string>(),
              plugin_infos()[at].type);
  }
}

}  // namespace
}  // namespace pickd::pick::test

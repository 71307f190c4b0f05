// Reading a plugin's parameters: typed, in range, and nothing left unread.
#include "daemon/config/parameters.hpp"

#include <gtest/gtest.h>

namespace pickd::config {
namespace {

PluginConfig plugin_with(const std::string& parameters) {
  PluginConfig plugin;
  plugin.type = plugin.name = "x";
  plugin.parameters = parse_tree(parameters, "f").value();
  plugin.place = plugin.parameters->place;
  return plugin;
}

TEST(ParameterReader, GivesValuesByTypeAndDefaultsWhereAbsent) {
  const PluginConfig plugin = plugin_with(
      "n: 1.5\ni: 7\nb: true\nt: words here\nc: least\nl: [a, b]\nd: 1m30s\nm: {deep: -2}\n");
  Errors errors;
  ParameterReader read(plugin, errors);
  EXPECT_EQ(read.number("n", 0, 0, 2), 1.5);
  EXPECT_EQ(read.integer("i", 0, 0, 10), 7U);
  EXPECT_TRUE(read.boolean("b", false));
  EXPECT_EQ(read.text("t", ""), "words here");
  EXPECT_EQ(read.choice("c", "most", {"least", "most"}), "least");
  EXPECT_EQ(read.text_list("l"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.duration_ms("d", 0, 1, 100'000), 90'000U);
  MapReader deep = read.map("m");
  EXPECT_EQ(deep.number("deep", 0, -5, 5), -2);
  deep.finish();
  EXPECT_EQ(read.number("absent", 4, 0, 5), 4);
  EXPECT_EQ(read.duration_ms("absent", 5, 0, 10), 5U);
  EXPECT_TRUE(read.map("absent").text_list("x").empty());
  EXPECT_FALSE(read.has("absent"));
  read.finish();
  EXPECT_TRUE(errors.empty()) << errors.text();
}

TEST(ParameterReader, RefusesWithPlaceAndRangeAndGoesOnWithTheDefault) {
  const PluginConfig plugin =
      plugin_with("n: 3\ni: -1\nb: 1\nt: [x]\nc: lest\nl: a\nd: 10\nq: .nan\nz:\n");
  Errors errors;
  ParameterReader read(plugin, errors);
  EXPECT_EQ(read.number("n", 0.5, 0, 2), 0.5);
  EXPECT_EQ(read.integer("i", 4, 0, 10), 4U);
  EXPECT_FALSE(read.boolean("b", false));
  EXPECT_EQ(read.text("t", "x"), "x");
  EXPECT_EQ(read.choice("c", "most", {"least", "most"}), "most");
  EXPECT_TRUE(read.text_list("l").empty());
  EXPECT_EQ(read.duration_ms("d", 5, 1, 1000), 5U);
  EXPECT_EQ(read.number("q", 1, 0, 2), 1);
  EXPECT_EQ(read.number("z", 1, 0, 2), 1);
  read.refuse("n", "clashes with i");
  read.finish();
  EXPECT_EQ(
      errors.text(),
      "f:1: plugins[x].parameters.n: must be a number from 0 to 2, is `3`\n"
      "f:2: plugins[x].parameters.i: must be a whole number from 0 to 10, is `-1`\n"
      "f:3: plugins[x].parameters.b: must be true or false, is `1`\n"
      "f:4: plugins[x].parameters.t: must be text, is a list\n"
      "f:5: plugins[x].parameters.c: must be one of least, most, is `lest`\n"
      "f:6: plugins[x].parameters.l: must be a list, is `a`\n"
      "f:7: plugins[x].parameters.d: must be a duration from 1ms to 1s with its unit (us, ms, "
      "s, min or h): 10s or 10ms?, is `10`\n"
      "f:8: plugins[x].parameters.q: must be a number from 0 to 2, is `.nan`\n"
      "f:9: plugins[x].parameters.z: must be a single value, has no value; leave the key out "
      "for the default\n"
      "f:1: plugins[x].parameters.n: clashes with i");
}

TEST(ParameterReader, RefusesWhatNobodyAskedFor) {
  const PluginConfig plugin = plugin_with("ttl: 5s\nttll: 5s\n");
  Errors errors;
  ParameterReader read(plugin, errors);
  read.duration_ms("ttl", 0, 0, 10'000);
  read.finish();
  EXPECT_EQ(errors.text(), "f:2: plugins[x].parameters.ttll: unknown key (did you mean `ttl`?)");
}

TEST(ParameterReader, TakesAPluginWithoutParameters) {
  PluginConfig plugin;
  plugin.name = "x";
  Errors errors;
  ParameterReader read(plugin, errors);
  EXPECT_EQ(read.number("n", 2, 0, 5), 2);
  read.finish();
  EXPECT_TRUE(errors.empty()) << errors.text();
}

}  // namespace
}  // namespace pickd::config

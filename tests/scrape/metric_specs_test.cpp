// Metric specs: the grammar, and what a configuration may change.
#include "tests/scrape/support.hpp"

namespace pickd::scrape::test {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

TEST(MetricSpec, HasANameAndLabelsThatMustMatch) {
  EXPECT_EQ(parse_metric_spec(" a:b_1 ")->name, "a:b_1");
  EXPECT_TRUE(parse_metric_spec("a{}")->labels.empty());
  auto spec = parse_metric_spec("a{x=1, y = \"b, c\" ,z=}");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->labels, (Labels{{"x", "1"}, {"y", "b, c"}, {"z", ""}}));
}

TEST(MetricSpec, IsRefusedWithWhatIsWrong) {
  for (const char* bad : {"", "{a=b}", "1a", "a b", "a{x=1", "a{x}", "a{=1}", "a{x=\"1}",
                          "a{x=\"1\"y=2}", "a{x:y=1}"}) {
    auto spec = parse_metric_spec(bad);
    ASSERT_FALSE(spec) << bad;
    EXPECT_NE(spec.error().text.find("name{label=value,...}"), std::string::npos) << bad;
  }
}

TEST(MetricSpecs, OverridesOneFieldOfAnEngineAndLeavesTheOthers) {
  EngineOverride change;
  change.name = "vllm";
  change.waiting = "my_queue{kind=short}";
  auto specs = MetricSpecs::make({change});
  ASSERT_TRUE(specs) << specs.error().text;
  const PageFacts page = read(
      "my_queue{kind=\"short\"} 2\nmy_queue{kind=\"long\"} 40\nvllm:num_requests_waiting 9\n"
      "vllm:num_requests_running 1\n",
      0, {}, kUnknown, *specs);
  EXPECT_EQ(page.engine, "vllm");
  EXPECT_EQ(page.facts.waiting, 2U);
  EXPECT_EQ(page.facts.running, 1U);
}

TEST(MetricSpecs, TakesAnEngineThatIsNotBuiltIn) {
  EngineOverride mine;
  mine.name = "mine";
  mine.waiting = "mine_waiting";
  mine.kv_use = "mine_kv";
  mine.cache_info = "mine_cache";
  mine.block_tokens_label = "tokens";
  mine.blocks_label = "blocks";
  auto specs = MetricSpecs::make({mine});
  ASSERT_TRUE(specs) << specs.error().text;
  EXPECT_NE(specs->find_engine("mine"), MetricSpecs::kAnyEngine);
  const PageFacts page =
      read("mine_waiting 4\nmine_kv 0.5\nmine_cache{tokens=\"32\",blocks=\"10\"} 1\n", 0, {},
           kUnknown, *specs);
  EXPECT_EQ(page.engine, "mine");
  EXPECT_EQ(page.facts.waiting, 4U);
  EXPECT_EQ(page.facts.block_tokens, 32U);
  EXPECT_EQ(page.facts.blocks, 10U);
}

TEST(MetricSpecs, NamesTheEngineAndTheFieldThatAreWrong) {
  EngineOverride change;
  change.name = "vllm";
  change.running = "a{";
  auto specs = MetricSpecs::make({change});
  ASSERT_FALSE(specs);
  EXPECT_NE(specs.error().text.find("engine vllm, runningRequestsSpec"), std::string::npos);
  EXPECT_FALSE(MetricSpecs::make({EngineOverride{}}));
}

TEST(MetricSpecs, FindsEveryNameAndNoOther) {
  const MetricSpecs& specs = built_in();
  for (const MetricSpecs::Entry& entry : specs.entries()) {
    const std::uint16_t name = specs.find_name(entry.spec.name);
    ASSERT_NE(name, MetricSpecs::kNone) << entry.spec.name;
    EXPECT_EQ(specs.find_name(entry.spec.name + "_total"), MetricSpecs::kNone);
    EXPECT_EQ(specs.find_name(entry.spec.name.substr(1)), MetricSpecs::kNone);
  }
  EXPECT_EQ(specs.find_name(""), MetricSpecs::kNone);
}

}  // namespace
}  // namespace pickd::scrape::test

// The YAML tree: duplicate keys are seen, and hostile documents cost little and are refused.
#include "daemon/config/tree.hpp"

#include "tests/config/support.hpp"

namespace pickd::config {
namespace {

std::string mistake(const std::string& yaml) {
  const auto tree = parse_tree(yaml, "f");
  EXPECT_FALSE(tree.ok()) << yaml.substr(0, 200);
  return tree ? "" : tree.error().text;
}

TEST(Tree, KeepsTheLineOfEveryValue) {
  const auto tree = parse_tree("a: 1\nb:\n  - x\n  - \"y\"\n", "f");
  ASSERT_TRUE(tree.ok()) << tree.error().text;
  const Node& root = *tree.value();
  EXPECT_EQ(root.find("a")->place.text(), "f:1");
  EXPECT_EQ(root.find("b")->items[1]->place.text(), "f:4");
  EXPECT_FALSE(root.find("a")->quoted);
  EXPECT_TRUE(root.find("b")->items[1]->quoted);
  EXPECT_EQ(root.find("c"), nullptr);
}

TEST(Tree, RefusesDuplicateKeysNamingBothLines) {
  EXPECT_EQ(mistake("a: 1\nb: 2\na: 3\n"),
            "f:3: the key `a` stands here a second time; first on line 1");
  EXPECT_EQ(mistake("s:\n  x: 1\n  \"x\": 1\n"),
            "f:3: the key `x` stands here a second time; first on line 2");
}

TEST(Tree, RefusesWhatIsNotYamlWithItsLine) {
  EXPECT_EQ(mistake("a: 1\n b: [\n").substr(0, 4), "f:2:");
  EXPECT_NE(mistake("a: [1, 2\n").find(": not YAML: "), std::string::npos);
  EXPECT_NE(mistake("a: *nowhere\n").find(": not YAML: "), std::string::npos);
}

TEST(Tree, RefusesPartsOfYamlThatHideThings) {
  EXPECT_EQ(mistake("a: 1\n---\nb: 2\n"),
            "f:2: a second YAML document (`---`); one file holds one");
  EXPECT_EQ(mistake("a: !!str 5\n"),
            "f:1: a YAML tag (`tag:yaml.org,2002:str`); there are none here");
  EXPECT_EQ(mistake("x: &x {a: 1}\ny:\n  <<: *x\n"),
            "f:3: a merge key (`<<`); write the values out or use an alias");
  EXPECT_EQ(mistake("? [a, b]\n: 1\n"), "f:1: a key that is not a plain word");
  EXPECT_NE(mistake(std::string(300, 'k') + ": 1\n").find("a key of more than 255 bytes"),
            std::string::npos);
}

TEST(Tree, ResolvesAliases) {
  const auto tree = parse_tree("x: &x [1, 2]\ny: *x\n", "f");
  ASSERT_TRUE(tree.ok()) << tree.error().text;
  EXPECT_EQ(tree.value()->find("y")->items.size(), 2U);
}

TEST(Tree, RefusesAnAliasInsideItsOwnAnchor) {
  EXPECT_EQ(mistake("a: &a [1, *a]\n"), "f:1: an alias (`*`) that stands inside its own anchor");
}

TEST(Tree, RefusesABillionLaughs) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 1; j < 10; ++j) yaml += ", " + last;
    yaml += "]\n";
  }
  EXPECT_EQ(mistake(yaml), "f:6: more than 262144 values, aliases counted as what they stand for");
}

TEST(Tree, RefusesDeepNestingOfEveryKind) {
  EXPECT_EQ(mistake(std::string(100'000, '[')), "f:1: nested deeper than 32 levels");
  std::string maps;
  for (int i = 0; i < 100'000; ++i) maps += "{a: ";
  EXPECT_EQ(mistake(maps), "f:1: nested deeper than 32 levels");
  std::string dashes;
  for (int i = 0; i < 50'000; ++i) dashes += "- ";
  EXPECT_EQ(mistake(dashes + "x"), "f:1: nested deeper than 32 levels");
}

TEST(Tree, RefusesDepthMadeOfAliases) {
  std::string yaml = "- &a0 [x]\n";
  for (int i = 1; i < 100; ++i) {
    yaml += "- &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_EQ(mistake(yaml), "f:32: nested deeper than 32 levels");
}

TEST(Tree, RefusesTooManyKeysAndTooManyBytes) {
  std::string yaml;
  for (int i = 0; i < 5000; ++i) yaml += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(mistake(yaml), "f:4097: more than 4096 keys in one map");
  EXPECT_EQ(mistake("# " + std::string(1 << 20, 'x')), "f: larger than 1048576 bytes");
}

class TreeFiles : public ConfigFiles {};

TEST_F(TreeFiles, StopsReadingAnEndlessFile) {
  const std::string path = write("big.yaml", "# " + std::string(3 << 20, 'x'));
  const auto tree = read_tree(path);
  ASSERT_FALSE(tree.ok());
  EXPECT_EQ(tree.error().code, -EFBIG);
  EXPECT_FALSE(read_tree("/dev/zero").ok());
}

TEST(Tree, ComparesByContentNotByPlaceOrOrder) {
  const Tree a = parse_tree("a: 1\nb: [x, {c: 2}]\n", "f").value();
  const Tree b = parse_tree("\n\nb:\n  - x\n  - c: 2\na: 1\n", "g").value();
  EXPECT_TRUE(same_tree(a, b));
  EXPECT_FALSE(same_tree(a, parse_tree("a: 1\nb: [x, {c: 3}]\n", "f").value()));
  EXPECT_FALSE(same_tree(a, parse_tree("a: \"1\"\nb: [x, {c: 2}]\n", "f").value()));
  EXPECT_TRUE(same_tree(nullptr, parse_tree("", "f").value()));
}

}  // namespace
}  // namespace pickd::config

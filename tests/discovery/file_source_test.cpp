// The file source against a real file system, while files are replaced, broken and taken away.
#include "daemon/discovery/file_source.hpp"

#include <sys/stat.h>

#include "tests/discovery/support.hpp"

namespace pickd::discovery::test {
namespace {

namespace fs = std::filesystem;
using Addresses = Heard::Addresses;

class FileSourceTest : public ::testing::Test {
 protected:
  void start(const std::string& path, std::uint64_t gone_grace_ms = 100) {
    FileSourceOptions options;
    options.path = path;
    options.pool = "chat";
    options.settle_ms = 5;
    options.gone_grace_ms = gone_grace_ms;
    options.poll_ms = poll_ms_;
    running_ = std::make_unique<Running>([&](net::Reactor& reactor) {
      return std::make_unique<FileSource>(reactor, options, heard_.hooks());
    });
  }

  Directory directory_;
  Heard heard_;
  std::uint64_t poll_ms_ = 60'000;  // so that it is inotify that tells
  std::unique_ptr<Running> running_;
};

TEST_F(FileSourceTest, GivesTheEndpointsOfAFile) {
  directory_.write("e.yaml", R"(
endpoints:
  - {name: a, address: "10.0.0.1:8000", models: [llama], labels: {zone: z}, capacity_tokens: 64000}
)");
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
  const auto spec = heard_.set()[0];
  EXPECT_EQ(spec.pool, "chat");
  EXPECT_EQ(spec.models, std::vector<std::string>{"llama"});
  EXPECT_EQ(spec.labels[0].second, "z");
  EXPECT_EQ(spec.capacity_blocks, 1000U);
}

TEST_F(FileSourceTest, ReadsJsonAndAListAlone) {
  directory_.write("e.json", R"([{"name": "a", "address": "10.0.0.1:8000"}])");
  start(directory_ / "e.json");
  EXPECT_TRUE(heard_.becomes({{"a", "10.0.0.1:8000"}}));
}

TEST_F(FileSourceTest, FollowsAFileThatIsReplaced) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  directory_.replace("e.yaml", file_of({{"b", "h:2"}, {"c", "h:3"}}));
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}, {"c", "h:3"}})) << "and what is gone is gone";
  directory_.replace("e.yaml", file_of({}));
  EXPECT_TRUE(heard_.becomes({}));
}

TEST_F(FileSourceTest, FollowsAFileThatIsWrittenInPlace) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  directory_.write("e.yaml", file_of({{"b", "h:2"}}));
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}}));
}

TEST_F(FileSourceTest, FollowsTheSwapOfAConfigMapsLinks) {
  fs::create_directory(directory_ / "..2026_01");
  directory_.write("..2026_01/e.yaml", file_of({{"a", "h:1"}}));
  fs::create_directory_symlink("..2026_01", directory_ / "..data");
  fs::create_symlink("..data/e.yaml", directory_ / "e.yaml");
  start(directory_.path());
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  fs::create_directory(directory_ / "..2026_02");
  directory_.write("..2026_02/e.yaml", file_of({{"b", "h:2"}}));
  fs::create_directory_symlink("..2026_02", directory_ / "..data_tmp");
  fs::rename(directory_ / "..data_tmp", directory_ / "..data");
  fs::remove_all(directory_ / "..2026_01");
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}}));
  EXPECT_EQ(heard_.trouble(), "");
}

TEST_F(FileSourceTest, FollowsTheFileThatALinkLeadsTo) {
  fs::create_directory(directory_ / "elsewhere");
  directory_.write("elsewhere/real.yaml", file_of({{"a", "h:1"}}));
  fs::create_symlink("elsewhere/real.yaml", directory_ / "e.yaml");
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  directory_.replace("elsewhere/real.yaml", file_of({{"b", "h:2"}}));
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}}));
}

TEST_F(FileSourceTest, KeepsTheSetOfBeforeWhenAFileIsWrongAndSaysWhere) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  directory_.replace("e.yaml", "endpoints:\n  - {name: a, adress: \"h:1\"}\n");
  ASSERT_TRUE(heard_.says("e.yaml:2: endpoints[0].adress: unknown key (did you mean `address`?)"));
  EXPECT_NE(heard_.trouble().find("its 1 endpoints of before stay"), std::string::npos);
  EXPECT_EQ(heard_.addresses(), (Addresses{{"a", "h:1"}}));
  directory_.replace("e.yaml", file_of({{"b", "h:2"}}));
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}}));
  EXPECT_TRUE(eventually([&] { return heard_.trouble().empty(); }));
}

TEST_F(FileSourceTest, TakesAnEmptyOrCutFileForOneThatIsBeingWritten) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  directory_.replace("e.yaml", "");
  ASSERT_TRUE(heard_.says("write `endpoints: []` when there are none"));
  directory_.replace("e.yaml", "endpoints:\n  - {name: b, addr");
  ASSERT_TRUE(heard_.says("not YAML"));
  EXPECT_EQ(heard_.addresses(), (Addresses{{"a", "h:1"}}));
}

TEST_F(FileSourceTest, LetsTheEndpointsOfAFileGoThatIsGone) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  fs::remove(directory_ / "e.yaml");
  EXPECT_TRUE(heard_.becomes({}));
  EXPECT_TRUE(heard_.says("No such file or directory"));
  directory_.write("e.yaml", file_of({{"b", "h:2"}}));
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}}));
}

TEST_F(FileSourceTest, DoesNotTakeAFileForGoneThatIsRemovedAndWrittenAnew) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml", 60'000);
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  fs::remove(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.says("No such file or directory")) << "it was seen to be gone";
  EXPECT_EQ(heard_.addresses(), (Addresses{{"a", "h:1"}}));
  directory_.write("e.yaml", file_of({{"a", "h:1"}, {"b", "h:2"}}));
  EXPECT_TRUE(heard_.becomes({{"a", "h:1"}, {"b", "h:2"}}));
}

TEST_F(FileSourceTest, TakesAllFilesOfADirectoryAndNothingElse) {
  directory_.write("b.yaml", file_of({{"b", "h:2"}}));
  directory_.write("a.json", R"({"endpoints": [{"name": "a", "address": "h:1"}]})");
  directory_.write("notes.txt", "not an endpoint file");
  directory_.write(".hidden.yaml", "nor this: {");
  start(directory_.path() + "/");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}, {"b", "h:2"}}));
  EXPECT_EQ(heard_.trouble(), "");
  directory_.write("c.yml", file_of({{"c", "h:3"}}));
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}, {"b", "h:2"}, {"c", "h:3"}}));
  fs::remove(directory_ / "a.json");
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}, {"c", "h:3"}}));
}

TEST_F(FileSourceTest, DoesNotLetOneBadFileOfADirectorySpoilTheOthers) {
  directory_.write("a.yaml", file_of({{"a", "h:1"}}));
  directory_.write("b.yaml", "endpoints: 7\n");
  start(directory_.path());
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  EXPECT_TRUE(heard_.says("b.yaml:1: endpoints: must be a list"));
  directory_.write("a.yaml", "endpoints: {\n");
  directory_.write("b.yaml", file_of({{"b", "h:2"}}));
  EXPECT_TRUE(heard_.becomes({{"a", "h:1"}, {"b", "h:2"}})) << "a's endpoints of before stay";
}

TEST_F(FileSourceTest, WaitsForAFileThatComesLater) {
  start(directory_ / "later/e.yaml", 60'000);
  ASSERT_TRUE(heard_.says("No such file or directory"));
  EXPECT_EQ(heard_.sets(), 0) << "what a daemon before this one knew stays for a moment";
  fs::create_directory(directory_ / "later");
  directory_.write("later/e.yaml", file_of({{"a", "h:1"}}));
  EXPECT_TRUE(heard_.becomes({{"a", "h:1"}}));
}

TEST_F(FileSourceTest, FindsByItselfWhatInotifyDoesNotTell) {
  // A change of the directory above the one that is watched.
  fs::create_directories(directory_ / "x/y");
  directory_.write("x/y/e.yaml", file_of({{"a", "h:1"}}));
  poll_ms_ = 20;
  start(directory_ / "x/y/e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  fs::create_directories(directory_ / "new/y");
  directory_.write("new/y/e.yaml", file_of({{"b", "h:2"}}));
  fs::rename(directory_ / "x", directory_ / "old");
  fs::rename(directory_ / "new", directory_ / "x");
  EXPECT_TRUE(heard_.becomes({{"b", "h:2"}}));
}

TEST_F(FileSourceTest, SaysATroubleOnceHoweverOftenItLooks) {
  directory_.write("e.yaml", "endpoints: 7\n");
  poll_ms_ = 5;
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.says("must be a list"));
  directory_.write("touch.txt", "1");
  directory_.write("touch.txt", "2");
  directory_.replace("e.yaml", file_of({{"a", "h:1"}}));
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  EXPECT_TRUE(eventually([&] { return heard_.trouble().empty(); }));
  EXPECT_EQ(heard_.troubles(), 2) << "one that it began, one that it ended";
}

// ---- Malformed and hostile files ----------------------------------------------------------------

struct Bad {
  const char* name;
  std::string text;
  std::string says;
};

class BadEndpointFile : public FileSourceTest, public ::testing::WithParamInterface<Bad> {};

TEST_P(BadEndpointFile, IsRefusedWithAReasonAndLeavesTheSet) {
  directory_.write("e.yaml", file_of({{"a", "h:1"}}));
  start(directory_ / "e.yaml");
  ASSERT_TRUE(heard_.becomes({{"a", "h:1"}}));
  directory_.replace("e.yaml", GetParam().text);
  EXPECT_TRUE(heard_.says(GetParam().says)) << heard_.trouble();
  EXPECT_EQ(heard_.addresses(), (Addresses{{"a", "h:1"}}));
}

std::string bomb() {
  std::string out = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char level = 'b'; level <= 'i'; ++level) {
    const std::string before(1, static_cast<char>(level - 1));
    out += std::string(1, level) + ": &" + level + " [";
    for (int at = 0; at < 9; ++at) out += (at == 0 ? "*" : ", *") + before;
    out += "]\n";
  }
  return out + "endpoints: *i\n";
}

std::string ten_thousand() {
  std::vector<std::pair<std::string, std::string>> many;
  for (int at = 0; at < 10'000; ++at) many.emplace_back("e" + std::to_string(at), "h:1");
  return file_of(many);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadEndpointFile,
    ::testing::Values(
        Bad{"Huge", "# " + std::string(2 << 20, 'x') + "\n" + file_of({{"b", "h:2"}}),
            "larger than"},
        Bad{"Bomb", bomb(), "more than 262144 values"},
        Bad{"TooMany", ten_thousand(), "there are 10000; at most 4095 are allowed"},
        Bad{"NamedTwice", file_of({{"b", "h:2"}, {"b", "h:3"}}),
            "e.yaml:3: endpoints: the name `b` is taken by the endpoint at"},
        Bad{"OfAPool", "endpoints:\n  - {name: b, address: \"h:2\", pool: other}\n",
            "e.yaml:2: endpoints[0].pool: the pool is `chat`, by its place; remove it"},
        Bad{"NoPort", "endpoints:\n  - {name: b, address: h}\n", "needs a port or a scheme"},
        Bad{"UnknownKey", "endpoint: []\n", "endpoint: unknown key (did you mean `endpoints`?)"},
        Bad{"Binary",
            std::string("\x7f"
                        "ELF\x02\x01\x01\0\0\0\0\0",
                        12),
            "e.yaml"},
        Bad{"Deep", std::string(200, '[') + std::string(200, ']'), "nested deeper"}),
    [](const auto& about) { return about.param.name; });

TEST_F(FileSourceTest, RefusesAPipeWithoutWaitingForIt) {
  ASSERT_EQ(::mkfifo((directory_ / "e.yaml").c_str(), 0600), 0);
  start(directory_ / "e.yaml");
  EXPECT_TRUE(heard_.says("not a regular file"));
}

}  // namespace
}  // namespace pickd::discovery::test

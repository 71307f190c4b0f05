// The reference bodies, where they are there: each file, and the pairs that must and must not
// share.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/libbody/support.hpp"

namespace pickd::body {
namespace {

class ReferenceBodies : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("REFERENCE_DIR");
    for (const std::string& folder : {std::string(given == nullptr ? "" : given),
                                      std::string(PICKD_SOURCE_DIR "/../shared/reference")}) {
      if (std::filesystem::exists(folder + "/request_bodies/INDEX.md")) {
        folder_ = folder + "/request_bodies/";
      }
    }
    if (folder_.empty()) {
      GTEST_SKIP()
          << "no reference bodies beside the source tree; REFERENCE_DIR names their folder";
    }
  }

  std::string json(const std::string& number) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (!entry.path().filename().string().starts_with(number + "_")) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      return text.str();
    }
    ADD_FAILURE() << "no file " << number;
    return {};
  }
  Read read(const std::string& number, const char* path = kChat, std::size_t step = SIZE_MAX) {
    return Read(path, json(number), {}, {}, step);
  }
  Keys keys(const std::string& number, const char* path = kChat) {
    const Read one = read(number, path);
    EXPECT_EQ(one.status, 0) << number;
    return one.keys();
  }

  std::string folder_;
};

TEST_F(ReferenceBodies, OfCompletionsAreStringsAndTokenIds) {
  const Read one = read("01", kCompletions);
  EXPECT_TRUE(one.text().starts_with("You are the support assistant"));
  const Read three = read("02", kCompletions);
  EXPECT_EQ(three.info.prompt_count, 3U);
  EXPECT_GE(shared(three.keys(0), three.keys(1)), 4U) << "the system text";
  const Read ids = read("03", kCompletions);
  EXPECT_EQ(ids.tokens().size(), 201U);
  const Read lists = read("04", kCompletions);
  ASSERT_EQ(lists.info.prompt_count, 2U);
  EXPECT_EQ(lists.keys(0), ids.keys());
  EXPECT_EQ(shared(lists.keys(1), ids.keys()), 1U) << "64 ids";
  EXPECT_EQ(keys("26", kCompletions).size(), 782U);
  EXPECT_EQ(read("39", kSglang).text(), one.text());
  EXPECT_EQ(read("20", kEmbeddings).info.prompt_count, 3U);
  EXPECT_TRUE(keys("20", kEmbeddings).empty());
}

TEST_F(ReferenceBodies, OfOneConversationShare) {
  const Read five = read("05");
  const Read six = read("06");
  EXPECT_TRUE(six.text().starts_with(five.text()));
  EXPECT_EQ(shared(five.keys(), six.keys()), five.text().size() / kBlockBytes);
  EXPECT_GE(shared(five.keys(), six.keys()), 4U);
  EXPECT_EQ(five.keys(), keys("07"));
}

TEST_F(ReferenceBodies, OfOtherSeedsShareNothing) {
  EXPECT_TRUE(share_nothing(keys("05"), keys("32")));
  EXPECT_TRUE(share_nothing(keys("16"), keys("17")));
  EXPECT_TRUE(share_nothing(keys("12"), keys("13")));
  EXPECT_TRUE(share_nothing(keys("05"), keys("15")));
}

TEST_F(ReferenceBodies, DivergeAtTheImage) {
  const Read a = read("08");
  const Read b = read("09");
  const std::size_t image = a.text().find("\xFFI");
  ASSERT_NE(image, std::string::npos);
  EXPECT_EQ(a.text().substr(0, image), b.text().substr(0, image));
  EXPECT_EQ(shared(a.keys(), b.keys()), image / kBlockBytes);
  EXPECT_TRUE(share_nothing(a.keys(), b.keys())) << "the text is shorter than a block";
}

TEST_F(ReferenceBodies, KeepToolCallsAndWhatIsNotAscii) {
  const Read calls = read("14");
  EXPECT_NE(calls.text().find("\xFF"
                              "Cstock\xFE"),
            std::string::npos);
  EXPECT_NE(calls.text().find("\xFFMtool\xFE"), std::string::npos);
  EXPECT_TRUE(read("18", kResponses).text().starts_with("\xFFMsystem\xFEYou are the support"));
  EXPECT_GT(keys("22").size(), 5U);
  EXPECT_EQ(keys("22"), read("22", kChat, 1).keys());
  const Read switched = read("30");
  EXPECT_EQ(switched.text().find("\xFFHchat_template\xFE"), 0U);
  EXPECT_EQ(switched.info.flags, PICKD_BODY_OPEN_END);
  EXPECT_TRUE(switched.text().ends_with("The first thing"));
  const Read media = read("31");
  EXPECT_EQ(media.info.media_count, 2U);
}

TEST_F(ReferenceBodies, OfAMebibyteInPiecesAreOne) {
  const Keys whole = keys("25");
  EXPECT_GE(whole.size(), 4000U);
  const std::string body = json("25");
  for (const std::size_t pieces : {std::size_t{1}, std::size_t{17}, std::size_t{1000}}) {
    EXPECT_EQ(whole, read("25", kChat, body.size() / pieces + 1).keys()) << pieces;
  }
}

TEST_F(ReferenceBodies, ThatCannotBeReadHaveNoPrefix) {
  for (const char* number : {"28", "37", "38"}) {
    const Read one = read(number);
    EXPECT_EQ(one.status, -EBADMSG) << number;
    EXPECT_TRUE(one.keys().empty()) << number;
  }
  EXPECT_EQ(read("35").status, 0);
  EXPECT_TRUE(keys("35").empty()) << "nothing but blanks";
}

}  // namespace
}  // namespace pickd::body

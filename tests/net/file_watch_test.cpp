// Files that change are noticed: written, replaced, or reached through a link that is replaced.
#include "daemon/net/file_watch.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pickd::net {
namespace {

constexpr std::uint64_t kQuietNs = 2'000'000;
constexpr std::uint64_t kGiveUpNs = 20'000'000'000;

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    char pattern[] = "/tmp/pickd-watch-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    reactor_ = std::move(*make_epoll_reactor());
    write("pickd.yaml", "one");
  }
  ~FileWatchTest() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
  }
  void watch() {
    auto made = FileWatch::create(*reactor_, {directory_ + "/pickd.yaml"}, kQuietNs, [this] {
      ++calls_;
      reactor_->stop();
    });
    ASSERT_TRUE(made) << made.error().text;
    watch_ = std::move(*made);
  }
  // Runs until the watch says something, or for long. How often it has said so then.
  int said() {
    const auto timer = reactor_->after(kGiveUpNs, [this] { reactor_->stop(); });
    reactor_->run();
    reactor_->cancel(timer);
    return calls_;
  }

  std::string directory_;
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<FileWatch> watch_;
  int calls_ = 0;
};

TEST_F(FileWatchTest, SaysSoWhenAFileIsWritten) {
  watch();
  write("pickd.yaml", "two");
  EXPECT_EQ(said(), 1);
}

TEST_F(FileWatchTest, SaysSoWhenAFileIsReplaced) {
  watch();
  write("new", "two");
  ASSERT_EQ(::rename((directory_ + "/new").c_str(), (directory_ + "/pickd.yaml").c_str()), 0);
  EXPECT_EQ(said(), 1);
}

TEST_F(FileWatchTest, SaysSoWhenTheLinkOfAConfigMapMoves) {
  std::filesystem::create_directory(directory_ + "/v1");
  std::filesystem::create_directory(directory_ + "/v2");
  std::filesystem::create_directory_symlink("v1", directory_ + "/..data");
  watch();
  std::filesystem::create_directory_symlink("v2", directory_ + "/..new");
  ASSERT_EQ(::rename((directory_ + "/..new").c_str(), (directory_ + "/..data").c_str()), 0);
  EXPECT_EQ(said(), 1);
}

TEST_F(FileWatchTest, SaysNothingOfOtherFiles) {
  watch();
  for (int turn = 0; turn < 100; ++turn) write("other" + std::to_string(turn), "x");
  const auto timer = reactor_->after(20 * kQuietNs, [this] { reactor_->stop(); });
  reactor_->run();
  reactor_->cancel(timer);
  EXPECT_EQ(calls_, 0);
}

TEST_F(FileWatchTest, FailsForADirectoryThatThereIsNot) {
  const auto made = FileWatch::create(*reactor_, {directory_ + "/no/pickd.yaml"}, kQuietNs, [] {});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text.find("/no"), std::string::npos);
}

}  // namespace
}  // namespace pickd::net

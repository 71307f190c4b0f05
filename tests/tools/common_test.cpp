// What the tools share: HTTP requests, percentiles, child programs.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "tools/common/child.hpp"
#include "tools/common/http.hpp"
#include "tools/common/numbers.hpp"
#include "tools/common/samples.hpp"

namespace pickd::tools {
namespace {

using State = HttpRequestReader::State;

TEST(HttpRequestReader, ReadsTheSameRequestsHoweverTheBytesAreCut) {
  const std::string stream =
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
      "GET /b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    HttpRequestReader reader(1000);
    std::vector<HttpRequest> requests;
    std::string bytes;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      bytes += stream.substr(at, piece);
      while (reader.read(bytes) == State::kReady) requests.push_back(reader.take());
    }
    ASSERT_EQ(requests.size(), 2U) << "in pieces of " << piece;
    EXPECT_EQ(requests[0].method, "POST");
    EXPECT_EQ(requests[0].body, "hello");
    EXPECT_TRUE(requests[0].keep_alive);
    EXPECT_EQ(requests[1].target, "/b?c=d");
    EXPECT_FALSE(requests[1].keep_alive);
    EXPECT_FALSE(reader.in_request());
  }
}

TEST(HttpRequestReader, RefusesNonsenseAndTooLargeBodies) {
  std::string nonsense = "what is this\r\n\r\n";
  EXPECT_EQ(HttpRequestReader(10).read(nonsense), State::kBad);
  std::string large = "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\nhello world";
  EXPECT_EQ(HttpRequestReader(10).read(large), State::kTooLarge);
  std::string endless = "GET /" + std::string(20'000, 'x');
  EXPECT_EQ(HttpRequestReader(10).read(endless), State::kTooLarge);
}

TEST(HttpRequestReader, TellsOnceThatTheClientWaitsForContinue) {
  HttpRequestReader reader(100);
  std::string head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(reader.read(head), State::kMore);
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
}

TEST(Samples, PercentilesAreSamples) {
  Samples samples;
  EXPECT_TRUE(std::isnan(samples.percentile(0.5)));
  for (const double value : {5, 1, 4, 2, 3}) samples.add(value);
  EXPECT_EQ(samples.percentile(0), 1);
  EXPECT_EQ(samples.percentile(0.5), 3);
  EXPECT_EQ(samples.percentile(0.99), 5);
  EXPECT_EQ(samples.mean(), 3);
}

TEST(Numbers, OfTheCommandLineAreNotTakenForOthers) {
  const auto read = [](const std::string& text) -> std::optional<std::uint64_t> {
    CLI::App app;
    std::uint64_t value = 7;
    std::vector<unsigned> small;
    CLI::App* command = app.add_subcommand("do");
    command->add_option("--value", value);
    command->add_option("--small", small);
    read_numbers_strictly(app);
    try {
      app.parse("do --value " + text + " --small 3");
    } catch (const CLI::ParseError&) {
      return std::nullopt;
    }
    return value;
  };
  EXPECT_EQ(read("0"), 0U);
  EXPECT_EQ(read("0x10"), 16U);
  EXPECT_EQ(read("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"-1", "18446744073709551616", "010", "1.5", "1e3", "0x", "+1", "x"}) {
    EXPECT_EQ(read(text), std::nullopt) << text;
  }
}

TEST(Child, GivesTheLineThatWasWaitedForAndKeepsTheRest) {
  auto child =
      Child::start({"/bin/sh", "-c", "echo noise; echo ready 42; echo more; sleep 1000"}, {});
  ASSERT_TRUE(child.ok()) << child.error().text;
  const auto line = child->wait_for_line("ready ", std::chrono::minutes(1));
  ASSERT_TRUE(line.ok()) << line.error().text;
  EXPECT_EQ(line.value(), "42");
  EXPECT_TRUE(child->running());
}

TEST(Child, SaysHowAProgramEndedThatNeverBecameReady) {
  auto child = Child::start({"/bin/sh", "-c", "exit 3"}, {});
  ASSERT_TRUE(child.ok());
  const auto line = child->wait_for_line("ready", std::chrono::minutes(1));
  ASSERT_FALSE(line.ok());
  EXPECT_NE(line.error().text.find("exited with 3"), std::string::npos) << line.error().text;
}

TEST(Child, FailsWithWordsWhenThereIsNoSuchProgram) {
  const auto child = Child::start({"/nonexistent/program"}, {});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().code, -ENOENT);
}

TEST(Child, StopEndsItsWholeGroup) {
  auto child = Child::start({"/bin/sh", "-c", "sleep 1000 & echo $!; wait"}, {});
  ASSERT_TRUE(child.ok());
  const auto grandchild = child->wait_for_line("", std::chrono::minutes(1));
  ASSERT_TRUE(grandchild.ok());
  const base::Fd watched(
      static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(grandchild.value()), 0)));
  ASSERT_TRUE(watched.valid());
  child->stop(std::chrono::minutes(1));
  EXPECT_FALSE(child->running());
  pollfd ended{watched.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);  // readable = it is dead
}

TEST(TempDir, IsGoneWithEverythingInItAtTheEnd) {
  std::string path;
  {
    auto made = TempDir::make("pickd-test");
    ASSERT_TRUE(made.ok()) << made.error().text;
    path = made->path();
    std::filesystem::create_directories(path + "/a/b");
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace pickd::tools

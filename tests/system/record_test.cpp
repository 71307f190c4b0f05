// pickctl record and replay against a real daemon: what was picked comes back as a trace, and a
// trace goes through a daemon as picks.
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr std::size_t kBytesPerToken = 4;

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// A recording that runs; it ends by itself after so many picks.
class Recording {
 public:
  Recording(Daemon& daemon, const std::string& path, int picks) {
    const std::vector<std::string> arguments = {std::string(PICKD_BINARY_DIR) + "/bin/pickctl",
                                                "--socket",
                                                daemon.socket(),
                                                "record",
                                                "--output",
                                                path,
                                                "--picks",
                                                std::to_string(picks)};
    auto started =
        tools::Child::start(arguments, {.read_output = false, .error_file = path + ".log"});
    EXPECT_TRUE(started.ok());
    if (!started.ok()) return;
    child_ = std::move(*started);
    EXPECT_TRUE(tools::wait_for_text(child_, path + ".log", "recording", kGenerous).ok());
  }
  // Its exit code; -1: it did not end by itself.
  int wait() {
    const bool ended = eventually([this] { return !child_.running(); });
    return ended && WIFEXITED(child_.exit_status()) ? WEXITSTATUS(child_.exit_status()) : -1;
  }

 private:
  tools::Child child_;
};

TEST(SystemRecord, WritesPicksAsATraceWithoutTheirText) {
  Daemon daemon;
  const Client client(daemon);
  const std::string path = daemon.directory() + "/trace.jsonl";
  Recording recording(daemon, path, 3);

  const std::string shared = prompt_of(1024 * kBytesPerToken);
  const std::vector<std::string> prompts = {shared + prompt_of(512 * kBytesPerToken, 1),
                                            shared + prompt_of(512 * kBytesPerToken, 2),
                                            prompt_of(100 * kBytesPerToken, 3)};
  for (const std::string& prompt : prompts) {
    const Result result;
    ASSERT_EQ(pick(client, Request(prompt), result), 0);
    pickd_report_info report = PICKD_REPORT_INIT;
    report.ticket = result.ticket();
    report.kind = PICKD_REPORT_DONE;
    report.output_tokens = 42;
    ASSERT_EQ(pickd_report(client.get(), &report, kGenerousUs), 0);
  }
  ASSERT_EQ(recording.wait(), 0);
  const std::vector<nlohmann::json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].at("input_length"), 1536);
  EXPECT_EQ(lines[0].at("output_length"), 42);
  EXPECT_EQ(lines[0].at("hash_ids"), nlohmann::json({0, 1, 2}));
  EXPECT_EQ(lines[1].at("hash_ids"), nlohmann::json({0, 1, 3})) << "the same up to there";
  EXPECT_EQ(lines[2].at("hash_ids"), nlohmann::json({4}));

  // What was written is a trace: it goes through a daemon again, and finds the same in common.
  const Ended replayed =
      run("pickctl", {"--socket", daemon.socket(), "replay", path, "--speed", "1000", "--json"});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.errors;
  const auto outcome = nlohmann::json::parse(replayed.output);
  EXPECT_EQ(outcome.at("picks"), 3);
  EXPECT_NEAR(outcome.at("bound_hit_share").get<double>(), 1024.0 / (1536 + 1536 + 100), 1e-9);
  EXPECT_TRUE(outcome.at("refused").empty()) << outcome;
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << "each pick was reported";
}

TEST(SystemRecord, OneRecordsAtATimeAndItsDeathEndsTheRecording) {
  Daemon daemon;
  const std::string path = daemon.directory() + "/trace.jsonl";
  {
    Recording first(daemon, path, 1'000'000);
    const Ended second = run("pickctl", {"--socket", daemon.socket(), "record", "--output",
                                         daemon.directory() + "/other", "--picks", "1"});
    EXPECT_EQ(second.exit_code, 1);
    EXPECT_NE(second.errors.find("one recording at a time"), std::string::npos) << second.errors;
  }  // killed
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 1; }));
  const Ended third = run("pickctl", {"--socket", daemon.socket(), "record", "--output",
                                      daemon.directory() + "/other", "--seconds", "0.01"});
  EXPECT_EQ(third.exit_code, 0) << third.errors;
}

TEST(SystemRecord, KeepsAFileThatIsThereAndLetsNobodyElseReadIt) {
  Daemon daemon;
  const std::string path = daemon.directory() + "/trace.jsonl";
  const auto record = [&](const std::string& to, bool force) {
    std::vector<std::string> words = {"--socket", daemon.socket(), "record", "--output",
                                      to,         "--seconds",     "0.01"};
    if (force) words.emplace_back("--force");
    return run("pickctl", words);
  };
  EXPECT_EQ(record(path, false).exit_code, 0);
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  std::ofstream(path) << "mine\n";
  const Ended again = record(path, false);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.errors.find("--force"), std::string::npos) << again.errors;
  EXPECT_EQ(fs::file_size(path), 5U);
  EXPECT_EQ(record(path, true).exit_code, 0);
  EXPECT_EQ(fs::file_size(path), 0U);
  const std::string link = daemon.directory() + "/link";
  fs::create_symlink(path, link);
  EXPECT_EQ(record(link, true).exit_code, 1) << "it may lead to another's file";
  EXPECT_EQ(record("/dev/null", false).exit_code, 0);
}

TEST(SystemRecord, ReplayRefusesWhatIsNoTrace) {
  Daemon daemon;
  const std::string path = daemon.directory() + "/trace.jsonl";
  std::ofstream(path) << "{\"timestamp\": 1}\n";
  const Ended ended = run("pickctl", {"--socket", daemon.socket(), "replay", path});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("trace.jsonl:1"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace pickd::systests

// The configuration changes while the daemon serves: the scheduling is taken, mistakes are not.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As an editor does it: whole, by a rename.
void replace_file(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
}

pickd_reason reason_of_a_pick(Daemon& daemon) {
  const Client client(daemon);
  const Result result;
  Request request("hello");
  request.raw.flags = PICKD_REQUEST_DRY_RUN;
  EXPECT_EQ(pick(client, request, result), 0);
  return pickd_result_reason(result.get());
}

class SystemReload : public ::testing::Test {
 protected:
  SystemReload() : daemon_(Settings{}), base_(text_of(daemon_.config())) {}

  std::uint64_t reloads() { return daemon_.counter("config_reloads"); }
  std::uint64_t failures() { return daemon_.counter("config_reload_failures"); }

  Daemon daemon_;
  std::string base_;
};

TEST_F(SystemReload, TakesAnotherProfileWhenTheFileChanges) {
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_TIE);
  replace_file(daemon_.config(), base_ + "scheduling: {profile: round-robin}\n");
  ASSERT_TRUE(eventually([&] { return reloads() == 1; })) << daemon_.log();
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_POLICY);
  replace_file(daemon_.config(), base_ + "scheduling: {}\n");
  ASSERT_TRUE(eventually([&] { return reloads() == 2; })) << daemon_.log();
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_TIE);
  // Nothing of the scheduling is set any more, so its section may go.
  replace_file(daemon_.config(), base_ + "reservations: {lease: 7min}\n");
  ASSERT_TRUE(eventually([&] {
    return daemon_.log().find("outside of `scheduling` need a restart") != std::string::npos;
  })) << daemon_.log();
  EXPECT_EQ(failures(), 0U) << daemon_.log();
}

TEST_F(SystemReload, KeepsWhatWasWhenTheFileIsEmptiedOrCut) {
  replace_file(daemon_.config(), base_ + "scheduling: {profile: round-robin}\n");
  ASSERT_TRUE(eventually([&] { return reloads() == 1; })) << daemon_.log();
  std::uint64_t refused = 0;
  const auto is_refused = [&](const std::string& text, const std::string& words) {
    const std::size_t before = daemon_.log().size();
    replace_file(daemon_.config(), text);
    ++refused;
    EXPECT_TRUE(eventually([&] { return failures() == refused; })) << words << daemon_.log();
    EXPECT_NE(daemon_.log().find(words, before), std::string::npos) << words << daemon_.log();
    EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_POLICY);
  };
  is_refused("", daemon_.config() + ": holds nothing, while the configuration in force sets `");
  is_refused("# all of it\n", "holds nothing");
  is_refused(base_, "scheduling: was set at " + daemon_.config() + ":");
  is_refused(base_ + "scheduling:\n", "write `scheduling: {}` to go back to the default");
  is_refused("scheduling: {profile: round-robin}\n", "listen: was set at ");
  // The same by hand.
  daemon_.signal(SIGHUP);
  ++refused;
  ASSERT_TRUE(eventually([&] { return failures() == refused; })) << daemon_.log();
  replace_file(daemon_.config(), base_ + "scheduling: {}\n");
  ASSERT_TRUE(eventually([&] { return reloads() == 2; })) << daemon_.log();
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_TIE);
}

TEST_F(SystemReload, KeepsWhatWasWhenTheNewOneIsWrong) {
  replace_file(daemon_.config(), base_ + "scheduling: {profile: round-robin}\n");
  ASSERT_TRUE(eventually([&] { return reloads() == 1; })) << daemon_.log();
  replace_file(daemon_.config(), base_ + "scheduling: {profile: round-robbin}\n");
  ASSERT_TRUE(eventually([&] { return failures() == 1; })) << daemon_.log();
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_POLICY);
  EXPECT_NE(daemon_.log().find("`round-robin`"), std::string::npos) << daemon_.log();
  // Half of a file, and then no file at all.
  replace_file(daemon_.config(), base_ + "scheduling: {prof");
  ASSERT_TRUE(eventually([&] { return failures() == 2; })) << daemon_.log();
  std::filesystem::remove(daemon_.config());
  ASSERT_TRUE(eventually([&] { return failures() == 3; })) << daemon_.log();
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_POLICY);
}

TEST_F(SystemReload, LogsEachMistakeOnALineOfItsOwn) {
  replace_file(daemon_.config(), base_ + "first: 1\nsecond: 2\n");
  ASSERT_TRUE(eventually([&] { return failures() == 1; })) << daemon_.log();
  for (const char* key : {": first: unknown key", ": second: unknown key"}) {
    const std::string log = daemon_.log();
    const std::size_t at = log.find(key);
    ASSERT_NE(at, std::string::npos) << log;
    const std::size_t begin = log.rfind('\n', at) + 1;
    EXPECT_NE(log.find(" error configuration not taken", begin), std::string::npos) << log;
    EXPECT_LT(log.find(" error configuration not taken", begin), at) << log;
  }
}

TEST_F(SystemReload, ReadsItAgainOnSighupAndSaysWhatNeedsARestart) {
  replace_file(daemon_.config(), base_ + "reservations: {lease: 7min}\n");
  daemon_.signal(SIGHUP);
  ASSERT_TRUE(eventually([&] {
    return daemon_.log().find("outside of `scheduling` need a restart") != std::string::npos;
  })) << daemon_.log();
  EXPECT_EQ(reloads(), 0U);
  EXPECT_EQ(reason_of_a_pick(daemon_), PICKD_REASON_TIE);
}

}  // namespace
}  // namespace pickd::systests

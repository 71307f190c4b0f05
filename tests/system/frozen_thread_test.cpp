// One thread of the daemon that stands still while the others answer: what tells of it.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

// The number of the daemon's thread of this name; 0: there is none.
pid_t thread_of(const Daemon& daemon, const std::string& name) {
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(daemon.pid()) + "/task")) {
    std::ifstream file(task.path() / "comm");
    std::string is;
    std::getline(file, is);
    if (is == name) return std::stoi(task.path().filename());
  }
  return 0;
}

class FrozenThread : public testing::TestWithParam<const char*> {};

TEST_P(FrozenThread, IsTheDoctorsFaultAndFailsTheCheckOfProbes) {
  Daemon daemon;
  const auto code_of = [&](const char* command, const char* option) {
    return run("pickctl", {"--socket", daemon.socket(), command, option}).exit_code;
  };
  ASSERT_EQ(code_of("status", "--check"), 0);
  const pid_t thread = thread_of(daemon, GetParam());
  ASSERT_NE(thread, 0);
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    ASSERT_TRUE(errno == EPERM || errno == ENOSYS);
    GTEST_SKIP() << "threads of other processes may not be stopped here";
  }
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr), 0);
  ASSERT_EQ(::waitpid(thread, nullptr, __WALL), thread);

  EXPECT_TRUE(eventually([&] { return code_of("status", "--check") == 3; }));
  const Ended doctor = run("pickctl", {"--socket", daemon.socket(), "--json", "doctor"});
  EXPECT_EQ(doctor.exit_code, 3) << doctor.errors;
  EXPECT_NE(doctor.output.find("\"check\": \"threads\""), std::string::npos) << doctor.output;

  ASSERT_EQ(::ptrace(PTRACE_DETACH, thread, nullptr, nullptr), 0);
  EXPECT_TRUE(eventually([&] { return code_of("status", "--check") == 0; }));
}

INSTANTIATE_TEST_SUITE_P(OfTheDaemon, FrozenThread,
                         testing::Values("pickd-worker0", "pickd-maintain"),
                         [](const auto& tested) {
                           return std::string(tested.index == 0 ? "Worker" : "Maintenance");
                         });

}  // namespace
}  // namespace pickd::systests

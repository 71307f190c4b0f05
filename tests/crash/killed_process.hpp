// Runs something in a process of its own that is killed (SIGKILL) at its n-th step, or not at all.
// Knows steps, not what happens between them.
#pragma once

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "daemon/base/step.hpp"

namespace pickd::crash {

// Memory of both processes: what the killed one leaves besides its files.
struct Legacy {
  std::uint64_t steps;
  char last_step[64];
  std::uint64_t begun;     // for the caller: operations begun,
  std::uint64_t done;      // finished,
  std::uint64_t replaced;  // and live words that the finished ones replaced
};

class KilledProcess {
 public:
  KilledProcess() {
    void* memory =
        ::mmap(nullptr, sizeof(Legacy), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    legacy_ = static_cast<Legacy*>(memory);
  }
  ~KilledProcess() {
    prefix_ = "";
    ::munmap(legacy_, sizeof(Legacy));
  }
  KilledProcess(const KilledProcess&) = delete;
  KilledProcess& operator=(const KilledProcess&) = delete;

  Legacy& legacy() { return *legacy_; }

  // Counts and kills at steps only whose name begins so.
  void only(const char* prefix) { prefix_ = prefix; }

  // `kill_at`: 1 is the first step; 0 or a step that never comes: it ends by itself. True when it
  // was killed. Anything else than the kill and a clean end fails the test.
  template <typename Body>
  bool run(std::uint64_t kill_at, Body&& body) {
    *legacy_ = {};
    const pid_t child = ::fork();
    if (child == 0) {
      left_ = legacy_;
      kill_at_ = kill_at;
      base::step_hook = &step;
      body(*legacy_);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) {
      ADD_FAILURE() << "no process: " << std::strerror(errno);
      return false;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "ended with status " << status;
    return false;
  }

  std::string where() const {
    return "killed at step " + std::to_string(legacy_->steps) + ", " + legacy_->last_step;
  }

 private:
  static void step(const char* name) {
    if (std::strncmp(name, prefix_, std::strlen(prefix_)) != 0) return;
    ++left_->steps;
    if (left_->steps != kill_at_) return;
    std::strncpy(left_->last_step, name, sizeof left_->last_step - 1);
    ::kill(::getpid(), SIGKILL);
  }

  // Of the process that is to be killed.
  inline static Legacy* left_ = nullptr;
  inline static std::uint64_t kill_at_ = 0;
  inline static const char* prefix_ = "";

  Legacy* legacy_;
};

}  // namespace pickd::crash

// A daemon that stands still (SIGSTOP) for the length of a scope.
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/system/support.hpp"

namespace pickd::systests {

class Standstill {
 public:
  explicit Standstill(Daemon& daemon) : daemon_(daemon) {
    daemon_.signal(SIGSTOP);
    EXPECT_TRUE(eventually([this] { return state() == 'T'; }));
  }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  ~Standstill() { daemon_.signal(SIGCONT); }

 private:
  // Of all its threads: a stop reaches them one by one.
  char state() const {
    const std::string tasks = "/proc/" + std::to_string(daemon_.pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::ifstream file(task.path() / "stat");
      std::string line;
      std::getline(file, line);
      const std::size_t behind = line.rfind(')');
      if (behind == std::string::npos || line[behind + 2] != 'T') return 'R';
    }
    return 'T';
  }

  Daemon& daemon_;
};

}  // namespace pickd::systests

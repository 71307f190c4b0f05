// A directory of a test's own, gone with the test.
#pragma once

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <set>
#include <string>

namespace pickd::state::test {

class InADirectory : public ::testing::Test {
 protected:
  InADirectory() {
    char pattern[] = "/tmp/pickd-state-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~InADirectory() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name = "state") const { return directory_ + "/" + name; }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  std::string directory_;
};

}  // namespace pickd::state::test

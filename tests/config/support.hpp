// What the tests of the configuration share: files in a directory of their own, and the text of an
// error.
#pragma once

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/config/load.hpp"

namespace pickd::config {

class ConfigFiles : public ::testing::Test {
 protected:
  ConfigFiles() {
    char pattern[] = "/tmp/pickd-config-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~ConfigFiles() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  base::Result<Loaded> load(const std::string& yaml,
                            const std::vector<std::string>& environment = {}) const {
    return load_config(write("pickd.yaml", yaml), environment);
  }

  // The configuration of a file that must be good.
  Config good(const std::string& yaml, const std::vector<std::string>& environment = {}) const {
    const auto loaded = load(yaml, environment);
    EXPECT_TRUE(loaded.ok()) << loaded.error().text;
    return loaded ? loaded.value().config : Config();
  }

  // The errors of a file that must be bad, without the directory's name.
  std::string bad(const std::string& yaml, const std::vector<std::string>& environment = {}) const {
    const auto loaded = load(yaml, environment);
    EXPECT_FALSE(loaded.ok()) << yaml;
    return loaded ? "" : without_directory(loaded.error().text);
  }

  std::string without_directory(std::string text) const {
    for (std::size_t at; (at = text.find(directory_ + "/")) != std::string::npos;) {
      text.erase(at, directory_.size() + 1);
    }
    return text;
  }

  std::string directory_;
};

}  // namespace pickd::config

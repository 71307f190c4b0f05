// What the tests of sources share: a reactor on a thread of its own, the sets that came, and files
// in a directory of their own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/discovery/source.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::discovery::test {

// How long an event is waited for before the test fails: far above what a loaded machine needs.
inline constexpr std::chrono::seconds kGenerous{60};

inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kGenerous;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// What a source said, for the test's thread to look at.
class Heard {
 public:
  using Addresses = std::map<std::string, std::string>;  // by name

  SourceHooks hooks() {
    return {[this](std::vector<endpoints::EndpointSpec> set) {
              const std::lock_guard lock(mutex_);
              set_ = std::move(set);
              ++sets_;
            },
            [this](const std::string& why) {
              const std::lock_guard lock(mutex_);
              if (why != trouble_) ++troubles_;
              trouble_ = why;
            }};
  }
  std::vector<endpoints::EndpointSpec> set() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }
  Addresses addresses() const {
    Addresses out;
    for (const auto& spec : set()) out[spec.name] = spec.address;
    return out;
  }
  std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }
  int sets() const {
    const std::lock_guard lock(mutex_);
    return sets_;
  }
  int troubles() const {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  bool becomes(const Addresses& wanted) const {
    return eventually([&] { return sets() != 0 && addresses() == wanted; });
  }
  bool says(const std::string& part) const {
    return eventually([&] { return trouble().find(part) != std::string::npos; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<endpoints::EndpointSpec> set_;
  std::string trouble_;
  int sets_ = 0;
  int troubles_ = 0;
};

// A source on a running reactor. Make the source with `make`; it ends before the reactor does.
class Running {
 public:
  explicit Running(const std::function<std::unique_ptr<Source>(net::Reactor&)>& make) {
    auto reactor = net::make_epoll_reactor();
    if (!reactor) throw std::runtime_error(reactor.error().text);
    reactor_ = std::move(*reactor);
    source_ = make(*reactor_);
    source_->start();
    thread_ = std::thread([this] { reactor_->run(); });
  }
  ~Running() {
    reactor_->stop();
    thread_.join();
    source_.reset();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::unique_ptr<net::Reactor> reactor_;
  std::unique_ptr<Source> source_;
  std::thread thread_;
};

class Directory {
 public:
  Directory() {
    char pattern[] = "/tmp/pickd-discovery-XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // In place, as an editor or a shell does.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  // Whole or not at all, as a tool should.
  void replace(const std::string& name, const std::string& text) const {
    write(".new", text);
    std::filesystem::rename(path_ + "/.new", path_ + "/" + name);
  }

 private:
  std::string path_;
};

// An endpoint file with these.
inline std::string file_of(const std::vector<std::pair<std::string, std::string>>& endpoints) {
  std::string out = endpoints.empty() ? "endpoints: []\n" : "endpoints:\n";
  for (const auto& [name, address] : endpoints)
    out += "  - {name: " + name + ", address: \"" + address + "\"}\n";
  return out;
}

}  // namespace pickd::discovery::test

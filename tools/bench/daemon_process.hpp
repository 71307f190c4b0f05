// A daemon of its own for a measurement: started from the directory of this program with a
// generated configuration, gone with this object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/child.hpp"
#include "tools/common/control_client.hpp"

namespace pickd::bench {

struct DaemonOptions {
  std::string profile;  // empty: the default one
  std::uint32_t endpoints = 8;
  std::uint32_t keys_max = 2048;
  std::uint64_t state_mib = 256;
  std::uint64_t capacity_tokens = 500'000;  // 0: no limit
  std::uint32_t workers = 1;
  static constexpr std::uint32_t kSpinDefault = UINT32_MAX;  // the daemon's own
  std::uint32_t spin_us = 0;
  bool busy_poll = false;  // always awake, whatever that costs; see DaemonProcess::rest()
  bool virtual_clock = false;
  std::vector<std::string> addresses =
      {};                                // of the endpoints, in place of `endpoints` made-up ones
  std::uint32_t scrape_interval_ms = 0;  // 0: they are not scraped
};

class DaemonProcess {
 public:
  // Throws std::runtime_error with the daemon's words.
  explicit DaemonProcess(const DaemonOptions& options);

  const std::string& socket() const { return socket_; }
  tools::ControlClient& control() { return *control_; }
  pid_t pid() const { return child_.pid(); }
  std::string reactor();
  // A counter by its metric's name.
  std::uint64_t counter(std::string_view name);
  // Leaves the cores to others until go_on(): stops a daemon that polls busily, waits until the
  // workers of any other sleep.
  void rest();
  void go_on();
  // What worker 0 has had of a core so far.
  std::uint64_t worker_cpu_ns();

 private:
  std::uint32_t workers_;
  bool busy_poll_;
  tools::TempDir directory_;
  std::string socket_;
  tools::Child child_;
  std::unique_ptr<tools::ControlClient> control_;
  std::string worker_times_;  // file of the kernel with the first worker's times
};

}  // namespace pickd::bench

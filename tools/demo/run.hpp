// Run: one policy under the workload. Starts the engines, pickd and the load driver, watches all of
// them, shows how far it is, and ends them again: every run begins with cold caches.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "tools/common/child.hpp"
#include "tools/demo/outcome.hpp"

namespace pickd::demo {

struct RunOptions {
  std::string title;     // for the progress line
  std::string profile;   // a built-in profile of pickd; empty: its default
  std::string programs;  // the directory of pickd, enginesim and pickd-demo-load
  std::string workload;  // file
  double seconds = 40;
  double probe_seconds = 0;  // measures picks per second this long at the end
  int signals = -1;          // a signalfd: a signal ends the run
  bool page = false;         // serves pickd's page, and plays the workload again and again
};

// The code of an error that says a signal came.
inline constexpr int kInterrupted = -EINTR;

class Run {
 public:
  explicit Run(RunOptions options) : options_(std::move(options)) {}

  // What was measured; or what failed, in words, with the last lines of the log of who failed.
  base::Result<Outcome> play();

 private:
  base::Result<void> start_engines();
  base::Result<void> start_pickd();
  base::Result<void> start_driver();
  base::Result<void> show_page() const;
  base::Result<void> watch_driver();
  bool read_driver();  // false at the end of its output
  base::Result<void> check_children();
  bool interrupted() const;
  void show_progress(bool last);
  std::string file(const std::string& name) const { return directory_->path() + '/' + name; }
  std::string last_words(const std::string& name) const;

  RunOptions options_;
  Outcome outcome_;
  std::string lines_;
  // The directory outlives the children that have files in it.
  std::optional<tools::TempDir> directory_;
  std::vector<tools::Child> engines_;
  std::vector<std::string> addresses_;
  tools::Child pickd_;
  tools::Child driver_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace pickd::demo

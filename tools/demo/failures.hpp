// FailureRun: engines that are killed, restarted, hung and added while requests run, and whether
// every request was served in spite of it. What the request log proves is in failure_log.hpp.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "tools/common/child.hpp"
#include "tools/common/control_client.hpp"
#include "tools/demo/failure_log.hpp"

namespace pickd::demo {

struct FailureOptions {
  std::string programs;  // the directory of pickd, enginesim and pickd-demo-load
  std::string workload;  // file
  std::string log;       // the request log is written there; empty: nowhere
  double seconds = 30;
  int signals = -1;  // a signalfd: a signal ends the run
};

class FailureRun {
 public:
  explicit FailureRun(FailureOptions options) : options_(std::move(options)) {}

  // True when nothing was wrong; prints what happens, and the verdict. An error: it could not run.
  base::Result<bool> play();

 private:
  struct Engine {
    std::string name;
    std::string port = "0";
    tools::Child child;
  };
  struct Step {
    double at;  // share of the run
    std::function<base::Result<void>()> act;
    bool done = false;
  };

  base::Result<void> start_engine(Engine& engine);
  base::Result<void> start_pickd();
  base::Result<void> start_driver();
  base::Result<void> watch();
  bool read_driver();  // false at the end of its output
  base::Result<void> take_steps();
  std::vector<Step> script();
  base::Result<void> kill_engine(std::size_t at);
  base::Result<void> restart_engine(std::size_t at);
  base::Result<void> hang_engine(std::size_t at, bool on);
  base::Result<void> join_engine();
  base::Result<void> look_at_endpoints();  // prints what changed since the last look
  bool print_verdict();
  void say(const std::string& text) const;
  std::string file(const std::string& name) const { return directory_->path() + '/' + name; }

  FailureOptions options_;
  FailureLog log_;
  std::string lines_;
  std::string request_log_;
  // The directory outlives the children that have files in it.
  std::optional<tools::TempDir> directory_;
  std::vector<Engine> engines_;
  tools::Child pickd_;
  tools::Child driver_;
  std::unique_ptr<tools::ControlClient> control_;
  std::map<std::string, std::string> seen_;  // the words for each endpoint at the last look
  std::vector<Step> steps_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace pickd::demo

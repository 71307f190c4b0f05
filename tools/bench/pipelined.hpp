// How many picks a second one worker answers when a client keeps a number of them outstanding on an
// asynchronous queue, every pick reported done as it is answered: prompts recur, both sides spin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/client.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

struct PipelinedOptions {
  std::uint32_t endpoints = 16;
  std::uint32_t prompt_tokens = 1000;
  std::uint32_t prompts = 1000;
  std::uint32_t outstanding = 32;
  double slice_s = 0.2;
  std::string policy;  // empty: the default one
};

class Pipelined {
 public:
  // Starts a daemon of its own and shows it every prompt once. Throws std::runtime_error.
  explicit Pipelined(const PipelinedOptions& options);
  ~Pipelined();
  Pipelined(const Pipelined&) = delete;
  Pipelined& operator=(const Pipelined&) = delete;

  // One slice of the measurement; the daemon sleeps before and after.
  void run();

  const tools::Samples& picks_s() const { return picks_s_; }  // one a slice
  // The share of the slices' time in which the worker's and the client's thread had a core.
  double worker_share() const { return share(worker_cpu_ns_); }
  double client_share() const { return share(client_cpu_ns_); }

 private:
  void submit();
  bool take_answer();
  double share(std::uint64_t cpu_ns) const {
    return static_cast<double>(cpu_ns) / static_cast<double>(measured_ns_);
  }

  PipelinedOptions options_;
  DaemonProcess daemon_;
  Client client_;
  pickd_queue* queue_ = nullptr;
  ResultHandle result_;
  std::vector<std::string> prompts_;
  std::size_t next_prompt_ = 0;
  tools::Samples picks_s_;
  std::uint64_t measured_ns_ = 0;
  std::uint64_t worker_cpu_ns_ = 0;
  std::uint64_t client_cpu_ns_ = 0;
};

}  // namespace pickd::bench

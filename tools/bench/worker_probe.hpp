// The daemon's work for one pick, measured in this process with the daemon's own parts: nothing
// comes from another core, nobody waits. What a round trip takes beside this, the hashing and the
// bare ring is the library's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tools/common/samples.hpp"

namespace pickd::bench {

struct WorkerProbeOptions {
  std::uint32_t endpoints = 16;
  std::uint32_t prompts = 64;
  std::uint32_t prompt_tokens = 4000;
  std::string policy;  // empty: the default one
};

class WorkerProbe {
 public:
  // Throws std::runtime_error.
  explicit WorkerProbe(const WorkerProbeOptions& options);
  ~WorkerProbe();

  // Adds up to `count` samples in nanoseconds: a round with one pick until its answer is in the
  // ring; and all that a worker does for a pick and its report, remembering the prompt included, in
  // batches of 32 as a full queue gives them.
  void run(std::size_t count, tools::Samples& answer_ns, tools::Samples& whole_ns);
  std::size_t record_bytes() const;  // of a submission
  std::size_t answer_bytes() const;  // of a completion

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pickd::bench

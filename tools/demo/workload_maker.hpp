// Makes the demo's workload: people who chat with several applications, each with a system prompt
// of its own. Knows the format of tools/demo/workload.h; the same options give the same file.
#pragma once

#include <cstdint>
#include <string>

namespace pickd::demo {

struct WorkloadOptions {
  double seconds = 40;             // conversations begin within this time
  double conversations_per_s = 8;  // open loop: they come whether or not answers are late
  std::uint64_t seed = 1;
  std::uint32_t applications = 40;
  std::uint32_t system_tokens_min = 1000;
  std::uint32_t system_tokens_max = 2000;
  std::uint32_t turns_min = 3;
  std::uint32_t turns_max = 7;
  std::uint32_t user_tokens_min = 40;
  std::uint32_t user_tokens_max = 160;
  std::uint32_t answer_tokens_min = 24;
  std::uint32_t answer_tokens_max = 64;
  double think_s_min = 3;  // from one turn to the next, answer and thinking
  double think_s_max = 7;
};

std::string make_workload(const WorkloadOptions& options);

}  // namespace pickd::demo

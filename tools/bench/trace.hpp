// A Mooncake trace: requests with a time, lengths and ids of 512-token blocks. Equal ids are equal
// blocks with equal history.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pickd::bench {

inline constexpr std::uint32_t kTraceTokensMax = 10'000'000;  // of a prompt, of an answer
inline constexpr std::uint32_t kTraceBlockTokens = 512;

struct TraceRequest {
  double arrival_s = 0;  // stamps are coarse: a group of equal ones is spread evenly up to the next
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;
  std::vector<std::uint64_t> block_ids;
};

struct Trace {
  std::vector<TraceRequest> requests;
  std::uint64_t input_tokens = 0;
  double bound_hit_rate = 0;  // token hits of one infinite cache shared by all endpoints
};

// Throws std::runtime_error with file and line when it cannot be read.
Trace read_trace(const std::string& path);

// The prompt of a request as token ids: each block's tokens follow from its id alone.
void make_prompt(const TraceRequest& request, std::vector<std::uint32_t>& token_ids);

}  // namespace pickd::bench

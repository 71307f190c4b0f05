// Outcome: what one run of the demo measured, read from the lines that the load driver prints, and
// the two ways it is shown. Starts nothing and measures nothing itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tools/common/samples.hpp"

namespace pickd::demo {

class Outcome {
 public:
  // Takes a line of pickd-demo-load (tools/demo/load.c has the format). False when it is none.
  bool add_line(std::string_view line);

  std::uint64_t turns() const { return turns_; }
  std::uint64_t failed() const { return failed_; }
  double hit_rate() const;       // cached tokens / prompt tokens, as the engines reported; 0..1
  double busiest_share() const;  // of the turns, those of the engine that got most; 0..1

  tools::Samples ttft_ms;
  tools::Samples itl_ms;
  tools::Samples pick_us;
  double picks_per_s = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t fallbacks = 0;

 private:
  bool add_turn(std::string_view rest);

  std::uint64_t turns_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> turns_by_engine_;
};

std::string table_of(const Outcome& round_robin, const Outcome& pickd);
std::string json_of(const Outcome& round_robin, const Outcome& pickd);

}  // namespace pickd::demo

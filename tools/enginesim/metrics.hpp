// The /metrics page under the names of vLLM's V1 engine. Turns numbers into text; counts nothing
// but its own histograms and reads no clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/enginesim/engine.hpp"

namespace pickd::enginesim {

class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void add(double value);
  // Appends the _bucket, _count and _sum lines of family `name`; `labels` without braces.
  void append_to(std::string& page, std::string_view name, std::string_view labels) const;

 private:
  std::span<const double> bounds_;     // ascending, static storage
  std::vector<std::uint64_t> counts_;  // not cumulative; the last one is beyond every bound
  double sum_ = 0;
};

// What requests experienced, in seconds.
struct RequestHistograms {
  RequestHistograms();
  Histogram ttft;
  Histogram itl;
  Histogram total;
  std::uint64_t stopped = 0;  // ended by themselves
  std::uint64_t cut = 0;      // by max_tokens
  std::uint64_t aborted = 0;
};

// `names[0]` is the model, names[i] the adapter with number i. The page ends with a newline.
std::string metrics_page(const Engine& engine, const RequestHistograms& requests,
                         const std::vector<std::string>& names, double process_start_s,
                         double now_s);

}  // namespace pickd::enginesim

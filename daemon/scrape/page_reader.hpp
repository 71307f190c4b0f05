// Page reader: the bytes of a metrics page (Prometheus text format or OpenMetrics), piece by piece,
// become facts about an engine. Pure: no I/O, no clock. Knows which metrics mean what from
// metric_specs.hpp only.
//
// Bounded memory whatever the page is: lines and labels of any length pass through; only what a
// metric spec asks for is kept. One bad line is skipped and counted. No allocation per line.
// A reader is used for one page after another; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "abi/state_layout.hpp"
#include "daemon/endpoints/engine_facts.hpp"
#include "daemon/scrape/metric_specs.hpp"

namespace pickd::scrape {

struct PageFacts {
  // Why the whole page says nothing: a word for a counter's label or the log ("empty page",
  // "no newline at the end", "not a metrics page"). Empty: the page is good, and `facts` holds.
  std::string_view refused;
  std::string_view engine;  // whose names were read: "vllm", ...; empty: none was recognised
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;         // lines that hold a sample
  std::uint64_t bad_lines = 0;       // skipped
  std::uint64_t dropped_series = 0;  // more of the wanted series than a reader keeps: sums unknown
  endpoints::EngineFacts facts;
};

class PageReader {
 public:
  // `specs` outlives the reader.
  explicit PageReader(const MetricSpecs& specs);
  ~PageReader();
  PageReader(PageReader&&) noexcept;
  PageReader& operator=(PageReader&&) noexcept;

  // Begins a page, whatever became of the one before. `engine` empty: found by the names in the
  // page; a name that the specs do not have: as empty. `rank` kUnknown32: all ranks of the page.
  void begin(std::string_view engine = {}, std::uint32_t rank = abi::kUnknown32);
  // The next bytes, cut anywhere.
  void feed(std::string_view bytes);
  // The page is over.
  PageFacts finish();

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace pickd::scrape

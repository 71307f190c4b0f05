#include "daemon/scrape/page_reader.hpp"

#include <cstring>

#include "daemon/scrape/line_machine.hpp"
#include "daemon/scrape/plain_lines.hpp"
#include "daemon/scrape/wanted_lines.hpp"

namespace pickd::scrape {

class PageReader::Machine {
 public:
  explicit Machine(const MetricSpecs& specs)
      : specs_(&specs),
        store_(specs),
        lines_(specs, store_),
        plain_(specs),
        wanted_(specs, store_) {}

  void begin(std::string_view engine, std::uint32_t rank) {
    bytes_ = 0;
    fast_samples_ = 0;
    last_ = 0;
    store_.begin(specs_->find_engine(engine), rank);
    lines_.begin();
  }

  void feed(std::string_view piece) {
    if (piece.empty()) return;
    bytes_ += piece.size();
    last_ = piece.back();
    const char* at = piece.data();
    const char* end = at + piece.size();
    if (!lines_.at_line_start()) at = lines_.feed(at, end, true);
    // Up to here lines lie whole in the piece: no look ahead goes past a newline.
    plain_.forget();
    const void* newline = ::memrchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* whole_end = newline == nullptr ? at : static_cast<const char*>(newline) + 1;
    while (at != whole_end) at = line(at, whole_end);
    lines_.feed(at, end, false);
  }

  PageFacts finish() {
    PageFacts page;
    page.bytes = bytes_;
    page.samples = fast_samples_ + lines_.samples();
    page.bad_lines = lines_.bad_lines();
    page.dropped_series = store_.dropped();
    if (bytes_ == 0) {
      page.refused = "empty page";
    } else if (last_ != '\n') {
      page.refused = "no newline at the end";
    } else if (page.samples == 0) {
      page.refused = "not a metrics page";
    } else {
      const std::uint16_t engine = store_.make_facts(page.facts);
      if (engine != MetricSpecs::kAnyEngine) page.engine = specs_->engines()[engine].name;
    }
    return page;
  }

 private:
  const char* line(const char* at, const char* end) {
    if (*at == '#') {
      return static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at))) +
             1;
    }
    const char* next = plain_.skip(at, end);
    if (next == nullptr) next = wanted_.take(at, end);
    if (next != nullptr) {
      ++fast_samples_;
      return next;
    }
    return lines_.feed(at, end, true);
  }

  const MetricSpecs* specs_;
  SeriesStore store_;
  LineMachine lines_;
  PlainLines plain_;
  WantedLines wanted_;
  std::uint64_t bytes_ = 0;
  std::uint64_t fast_samples_ = 0;
  char last_ = 0;
};

PageReader::PageReader(const MetricSpecs& specs) : machine_(std::make_unique<Machine>(specs)) {
  begin();
}
PageReader::~PageReader() = default;
PageReader::PageReader(PageReader&&) noexcept = default;
PageReader& PageReader::operator=(PageReader&&) noexcept = default;

void PageReader::begin(std::string_view engine, std::uint32_t rank) {
  machine_->begin(engine, rank);
}
void PageReader::feed(std::string_view bytes) { machine_->feed(bytes); }
PageFacts PageReader::finish() { return machine_->finish(); }

}  // namespace pickd::scrape

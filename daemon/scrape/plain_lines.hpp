// The fast way over lines that nobody asks for: most of a page. Says only whether a line that lies
// whole in memory is a well-made sample of an unwanted metric; whatever is unusual is for the
// careful line_machine.hpp, which would have counted such a line the same.
//
// Lines of a histogram begin alike: what a line has in common with the one before is not read
// again.
#pragma once

#include <algorithm>
#include <array>

#include "daemon/scrape/byte_scan.hpp"
#include "daemon/scrape/metric_specs.hpp"

namespace pickd::scrape {

class PlainLines {
 public:
  explicit PlainLines(const MetricSpecs& specs) : specs_(&specs) {}

  // The memory that lines were in may be gone.
  void forget() { starts_count_ = 0; }

  // [at, end) begins with a line and holds its newline; `end` is just behind a newline. Returns
  // what follows the line, or nullptr.
  const char* skip(const char* at, const char* end) {
    const char* line = at;
    starts_count_ = common_starts(line, end);
    if (starts_count_ != 0) {
      at = skip_labels(line, line + starts_[starts_count_ - 1], end, true);
    } else {
      at = skip_name(line, end);
      if (at == line || is_digit(*line)) return nullptr;
      const std::string_view name(line, static_cast<std::size_t>(at - line));
      if (specs_->find_name(name) != MetricSpecs::kNone) return nullptr;
      if (*at == '{') at = at[1] == '}' ? at + 2 : skip_labels(line, at + 1, end, false);
    }
    if (at == nullptr || *at != ' ') return nullptr;
    const char* value = at + 1;
    at = skip_decimal(value);
    if (at == value) return nullptr;
    if (*at == '\r') ++at;
    if (*at != '\n') return nullptr;
    return at + 1;
  }

 private:
  static constexpr std::size_t kStartsMax = 8;

  // How many of the label values of the line before begin within what `line` has in common with it.
  // That line was plain up to there, so this one is.
  std::size_t common_starts(const char* line, const char* end) const {
    if (starts_count_ == 0) return 0;
    const std::size_t common = common_bytes(
        before_, line,
        std::min<std::size_t>(starts_[starts_count_ - 1], static_cast<std::size_t>(end - line)));
    std::size_t count = starts_count_;
    while (count != 0 && starts_[count - 1] > common) --count;
    return count;
  }

  // Passes over labels up to behind the '}', beginning in a value or at a label's name. nullptr:
  // unusual.
  const char* skip_labels(const char* line, const char* at, const char* end, bool in_value) {
    while (true) {
      if (!in_value) {
        const char* label = at;
        at = skip_label(label);
        if (at == label || *at != '=' || at[1] != '"') return nullptr;
        at += 2;
        if (starts_count_ < kStartsMax) {
          before_ = line;
          starts_[starts_count_++] = static_cast<std::size_t>(at - line);
        }
      }
      before_ = line;
      in_value = false;
      bool escaped = false;
      at = skip_value(at, end, &escaped);
      if (*at != '"') return nullptr;
      ++at;
      if (*at == ',')
        ++at;
      else if (*at != '}')
        return nullptr;
      if (*at == '}') return at + 1;
    }
  }

  static const char* skip_label(const char* at) {
    if (is_digit(*at)) return at;
    while (is_name_byte(*at) && *at != ':') ++at;
    return at;
  }

  const MetricSpecs* specs_;
  const char* before_ = nullptr;                  // the line that starts_ is of
  std::array<std::size_t, kStartsMax> starts_{};  // offsets in it of its labels' values
  std::size_t starts_count_ = 0;
};

}  // namespace pickd::scrape

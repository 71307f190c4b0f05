// The fast way over lines that somebody asks for: a well-made sample that lies whole in memory and
// has nothing unusual (escapes, values of hundreds of bytes, words for numbers, stamps) becomes a
// sample whose labels are views of the page. Everything else is for the careful line_machine.hpp,
// which would have given the same sample.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "abi/key.hpp"
#include "daemon/scrape/byte_scan.hpp"
#include "daemon/scrape/series.hpp"

namespace pickd::scrape {

class WantedLines {
 public:
  WantedLines(const MetricSpecs& specs, SeriesStore& store)
      : specs_(&specs), store_(&store), known_(specs.labels().size()) {}

  // [at, end) begins with a line and holds its newline. Gives its sample to the store and returns
  // what follows the line, or does nothing and returns nullptr.
  const char* take(const char* at, const char* end) {
    const char* name = at;
    at = skip_name(name, end);
    if (at == name || is_digit(*name)) return nullptr;
    Sample sample;
    sample.name = specs_->find_name({name, static_cast<std::size_t>(at - name)});
    if (sample.name == MetricSpecs::kNone) return nullptr;
    if (*at == '{') at = take_labels(at + 1, end, sample);
    const char* next = at == nullptr ? nullptr : take_value(at, end, sample);
    if (next != nullptr) {
      sample.known = known_.data();
      store_->add(sample);
    }
    for (std::size_t each = 0; each < present_count_; ++each) known_[present_[each]] = {};
    present_count_ = 0;
    return next;
  }

 private:
  static constexpr std::size_t kLabelBytesMax = 256;  // as a token of the line machine
  static constexpr std::size_t kValueBytesMax = 511;  // longer ones are hashed in several blocks
  static constexpr std::size_t kNumberBytesMax = 64;
  static constexpr std::size_t kPlacesMax = 16;

  const char* take_labels(const char* at, const char* end, Sample& sample) {
    std::size_t place = 0;
    while (*at != '}') {
      const char* name = at;
      if (is_digit(*at)) return nullptr;
      while (is_name_byte(*at) && *at != ':') ++at;
      const std::string_view label(name, static_cast<std::size_t>(at - name));
      if (label.empty() || label.size() > kLabelBytesMax || at[0] != '=' || at[1] != '"')
        return nullptr;
      const char* from = at + 2;
      at = skip_unescaped(from, end);
      const std::string_view value(from, static_cast<std::size_t>(at - from));
      if (*at != '"' || value.size() > kValueBytesMax) return nullptr;
      ++at;
      if (!add_label(label, value, place++, sample)) return nullptr;
      if (*at == ',') {
        ++at;
      } else if (*at != '}') {
        return nullptr;
      }
    }
    return at + 1;
  }

  // False: it came before.
  bool add_label(std::string_view name, std::string_view value, std::size_t place, Sample& sample) {
    const std::size_t known = find_label(name, place);
    const std::uint64_t hash = XXH3_64bits_withSeed(
        value.data(), value.size(),
        known == kNotKnown ? XXH3_64bits(name.data(), name.size()) : specs_->label_hash(known));
    sample.labels += hash;
    if (known == kNotKnown) {
      sample.group += hash;
      return true;
    }
    if (!is_part_of_rank(known)) sample.group += hash;
    if (known_[known].present) return false;
    known_[known] = {value, true};
    present_[present_count_++] = known;
    return present_count_ < present_.size();
  }

  // The labels of one page mostly stand at the same places.
  std::size_t find_label(std::string_view name, std::size_t place) {
    const std::vector<std::string>& labels = specs_->labels();
    if (place < kPlacesMax && guess_[place] < labels.size() && labels[guess_[place]] == name)
      return guess_[place];
    const auto at =
        static_cast<std::size_t>(std::find(labels.begin(), labels.end(), name) - labels.begin());
    if (at == labels.size()) return kNotKnown;
    if (place < kPlacesMax) guess_[place] = at;
    return at;
  }

  static const char* take_value(const char* at, const char* end, Sample& sample) {
    if (*at != ' ') return nullptr;
    const char* value = at + 1;
    at = skip_decimal(value);
    const auto bytes = static_cast<std::size_t>(at - value);
    if (bytes == 0 || bytes > kNumberBytesMax) return nullptr;
    if (!parse_number({value, bytes}, &sample.value)) return nullptr;
    if (*at == '\r') ++at;
    return at != end && *at == '\n' ? at + 1 : nullptr;
  }

  static constexpr std::size_t kNotKnown = SIZE_MAX;

  const MetricSpecs* specs_;
  SeriesStore* store_;
  std::vector<Sample::Label> known_;       // by place in specs_->labels()
  std::array<std::size_t, 32> present_{};  // those of known_ that are set
  std::size_t present_count_ = 0;
  std::array<std::size_t, kPlacesMax> guess_{};  // what stood at each place of a line before
};

}  // namespace pickd::scrape

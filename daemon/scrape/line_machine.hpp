// Line machine: the text format byte by byte, so that it may be cut anywhere. Gives the samples of
// wanted metrics to a SeriesStore, counts the others and the bad lines.
//
//   line   = '#' anything | blanks | name [ '{' labels '}' ] value [ stamp ] [ '#' exemplar ]
//   labels = label '=' '"' value '"' { ',' label '=' '"' value '"' } [ ',' ]
//
// Blanks may stand between any two of these. What follows a value is not looked at beyond that. A
// newline ends a line in any state, so a bad line spoils no other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/scrape/series.hpp"

namespace pickd::scrape {

class LineMachine {
 public:
  LineMachine(const MetricSpecs& specs, SeriesStore& store);

  void begin();
  // Takes bytes up to `end`; with `one_line` no further than behind the next newline. Returns where
  // it stopped.
  const char* feed(const char* at, const char* end, bool one_line);
  bool at_line_start() const { return state_ == State::kLineStart; }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t bad_lines() const { return bad_lines_; }

 private:
  enum class State : std::uint8_t {
    kLineStart,
    kComment,
    kName,
    kAfterName,
    kLabelStart,
    kLabelName,
    kBeforeEquals,
    kBeforeQuote,
    kLabelValue,
    kEscape,
    kAfterLabelValue,
    kBeforeValue,
    kValue,
    kAfterValue,
    kStamp,
    kTail,
    kBad,
  };
  static constexpr std::size_t kTokenBytesMax = 256;
  static constexpr std::size_t kTextBytesMax = 32 * 1024;  // of the kept labels of one line
  // A label's value is hashed in blocks of so many bytes, wherever a page is cut.
  static constexpr std::size_t kBlockBytes = 512;
  static constexpr std::uint16_t kNotKept = 0xFFFF;

  // A short token that may come in pieces. Too long is remembered: nobody asks for such a one.
  struct Token {
    std::array<char, kTokenBytesMax> bytes;
    std::size_t size = 0;
    bool too_long = false;

    void clear() { size = 0, too_long = false; }
    void add(std::string_view piece) {
      too_long |= piece.size() > kTokenBytesMax - size;
      const std::size_t taken = std::min(piece.size(), kTokenBytesMax - size);
      std::copy_n(piece.data(), taken, bytes.data() + size);
      size += taken;
    }
    std::string_view view() const {
      return too_long ? std::string_view{} : std::string_view{bytes.data(), size};
    }
  };
  struct Kept {
    std::size_t from = 0;
    std::size_t size = 0;
    bool present = false;
  };

  const char* pass_over(const char* at, const char* end);
  State step(char letter);
  State start_line(char letter);
  State after_name();
  State before_value(char letter);
  State after_label_value(char letter);
  void start_label();
  void end_label_name();
  void add_to_value(std::string_view piece);
  void hash_block();
  void end_label_value();
  State end_value();
  void end_line();
  void give_sample();

  const MetricSpecs* specs_;
  SeriesStore* store_;
  State state_ = State::kLineStart;
  std::uint64_t samples_ = 0;
  std::uint64_t bad_lines_ = 0;

  // Of the line at hand.
  Token name_;
  Token value_;
  double number_ = 0;
  bool has_value_ = false;
  std::uint16_t wanted_ = MetricSpecs::kNone;

  // Of a wanted line only.
  Token label_;
  std::uint16_t kept_at_ = kNotKept;  // place in kept_ of the label at hand
  bool of_group_ = true;
  std::uint64_t hash_ = 0;  // of the label at hand
  std::uint64_t labels_hash_ = 0;
  std::uint64_t group_hash_ = 0;
  // The values of the kept labels, and behind them what is not hashed yet of the value at hand.
  std::string text_;
  std::size_t block_from_ = 0;
  std::vector<Kept> kept_;  // by place in specs_->labels()
  std::vector<Sample::Label> known_;
};

}  // namespace pickd::scrape

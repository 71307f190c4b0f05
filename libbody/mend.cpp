#include "libbody/mend.hpp"

#include <cstring>
#include <string_view>

namespace pickd::body {

namespace {

constexpr std::size_t kWholeDigitsMax = 19;  // of a number that 64 bits hold for sure, and its sign
constexpr std::size_t kNumberDigitsMax = 300;  // more are beyond what a double holds
constexpr std::size_t kEscapeBytes = 6;        // backslash, u, four digits
constexpr std::string_view kWordsAside[] = {"-Infinity", "Infinity", "NaN"};

bool is_number_byte(char byte) {
  return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' ||
         byte == 'E';
}

// Of an escape "\uD83D": 0xD8. Other bytes: 0.
unsigned surrogate_of(const char* at, const char* end) {
  if (static_cast<std::size_t>(end - at) < kEscapeBytes || at[0] != '\\' || at[1] != 'u') return 0;
  if (at[2] != 'd' && at[2] != 'D') return 0;
  const char second = static_cast<char>(at[3] | 0x20);
  if (second == '8' || second == '9') return 0xD8;
  if (second == 'a' || second == 'b') return 0xD8;
  return second >= 'c' && second <= 'f' ? 0xDC : 0;
}

class Mender {
 public:
  Mender(char* text, std::size_t size) : at_(text), end_(text + size) {}

  bool run() {
    while (at_ != end_) {
      if (*at_ == '"') {
        string();
      } else if (*at_ == 'N' || *at_ == 'I' || *at_ == '-') {
        if (!word()) number();
      } else if (*at_ >= '0' && *at_ <= '9') {
        number();
      } else {
        ++at_;
      }
    }
    return changed_;
  }

 private:
  void string() {
    ++at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ == '\\')
        escape();
      else
        ++at_;
    }
    if (at_ != end_) ++at_;
  }

  void escape() {
    const unsigned half = surrogate_of(at_, end_);
    if (half == 0) {
      at_ += end_ - at_ < 2 ? 1 : 2;
    } else if (half == 0xD8 && surrogate_of(at_ + kEscapeBytes, end_) == 0xDC) {
      at_ += 2 * kEscapeBytes;
    } else {
      std::memcpy(at_ + 2, "FFFD", 4);
      at_ += kEscapeBytes;
      changed_ = true;
    }
  }

  bool word() {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    for (const std::string_view one : kWordsAside) {
      if (!rest.starts_with(one)) continue;
      std::memset(at_, ' ', one.size());
      *at_ = '0';
      at_ += one.size();
      changed_ = true;
      return true;
    }
    if (*at_ == '-') return false;
    ++at_;
    return true;
  }

  void number() {
    char* const from = at_;
    while (at_ != end_ && is_number_byte(*at_)) ++at_;
    if (at_ == from) {
      ++at_;
      return;
    }
    const std::string_view text(from, static_cast<std::size_t>(at_ - from));
    const std::size_t exponent = text.find_first_of("eE");
    const bool whole = text.find_first_of(".eE") == std::string_view::npos;
    if (text.size() > kNumberDigitsMax) {
      blank(from, from + kWholeDigitsMax - 1);
    } else if (whole && text.size() > kWholeDigitsMax) {
      std::memcpy(at_ - 2, "e2", 2);
      changed_ = true;
    } else if (exponent != std::string_view::npos && text.size() - exponent > 3) {
      blank(from, from + exponent);
    }
  }

  // Ends the number that begins at `first` here.
  void blank(const char* first, char* from) {
    while (from > first + 1 && (from[-1] < '0' || from[-1] > '9')) --from;
    std::memset(from, ' ', static_cast<std::size_t>(at_ - from));
    changed_ = true;
  }

  char* at_;
  char* const end_;
  bool changed_ = false;
};

}  // namespace

bool mend(char* text, std::size_t size) { return Mender(text, size).run(); }

}  // namespace pickd::body

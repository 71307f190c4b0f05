// Bytes and numbers of the text format. Knows no lines.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

namespace pickd::scrape {

constexpr bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }
constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
constexpr bool is_name_byte(char letter) {
  const char lower = static_cast<char>(letter | 0x20);
  return (lower >= 'a' && lower <= 'z') || is_digit(letter) || letter == '_' || letter == ':';
}

// Passes over a plain decimal number: digits with a point or an exponent, no words. Returns where
// it ends, `from` when there is none. The bytes must end with something that is no part of one.
inline const char* skip_decimal(const char* from) {
  const char* at = from;
  if (*at == '-' || *at == '+') ++at;
  const char* digits = at;
  while (is_digit(*at)) ++at;
  auto count = at - digits;
  if (*at == '.') {
    digits = ++at;
    while (is_digit(*at)) ++at;
    count += at - digits;
  }
  if (count == 0) return from;
  if (*at == 'e' || *at == 'E') {
    ++at;
    if (*at == '-' || *at == '+') ++at;
    if (!is_digit(*at)) return from;
    while (is_digit(*at)) ++at;
  }
  return at;
}

// A value as the formats write it: a decimal number, NaN, Inf, +Inf, -Infinity in any case. False:
// it is none. What is too large for a double is infinite, what is too small is 0.
inline bool parse_number(std::string_view text, double* value) {
  bool negative = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return false;
  const auto is_word = [text](std::string_view word) {
    if (text.size() != word.size()) return false;
    for (std::size_t at = 0; at < word.size(); ++at) {
      if ((text[at] | 0x20) != word[at]) return false;
    }
    return true;
  };
  double read = 0;
  if (is_digit(text.front()) || text.front() == '.') {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (end != text.data() + text.size()) return false;
    if (error == std::errc::result_out_of_range) {
      // from_chars says only that it does not fit: the sign of the exponent says where.
      read = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos
                 ? 0.0
                 : std::numeric_limits<double>::infinity();
    } else if (error != std::errc{}) {
      return false;
    }
  } else if (is_word("nan")) {
    read = std::numeric_limits<double>::quiet_NaN();
  } else if (is_word("inf") || is_word("infinity")) {
    read = std::numeric_limits<double>::infinity();
  } else {
    return false;
  }
  *value = negative ? -read : read;
  return true;
}

}  // namespace pickd::scrape

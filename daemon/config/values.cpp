#include "daemon/config/values.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "daemon/config/errors.hpp"

namespace pickd::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t ns;
};
// Longer names before their prefixes' namesakes; format_duration walks it from the back.
constexpr Unit kUnits[] = {{"ns", 1},
                           {"us", 1'000},
                           {"ms", 1'000'000},
                           {"s", 1'000'000'000},
                           {"min", 60'000'000'000},
                           {"h", 3'600'000'000'000}};

base::Error must_be(const std::string& what, std::string_view text) {
  return {-EINVAL, "must be " + what + ", is " + (text.empty() ? "empty" : shown(text))};
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool contains(const Range& range, std::uint64_t value) {
  return (value >= range.low && value <= range.high) || (range.or_zero && value == 0);
}

std::uint64_t unit_in_ns(std::string_view name) {
  if (name == "m") return 60'000'000'000;  // as Go writes minutes
  const auto* found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [name](const Unit& unit) { return unit.name == name; });
  return found == std::end(kUnits) ? 0 : found->ns;
}

// Adds "12.5ms" at the front of `rest` to `sum_ns` and takes it off; false on anything else.
bool take_part(std::string_view& rest, long double& sum_ns) {
  const std::size_t number_bytes = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const std::string_view number = rest.substr(0, number_bytes);
  rest.remove_prefix(number_bytes);
  const std::size_t unit_bytes = std::min(rest.find_first_of("0123456789. "), rest.size());
  const std::uint64_t ns = unit_in_ns(rest.substr(0, unit_bytes));
  rest.remove_prefix(unit_bytes);
  long double value = 0;
  const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (ns == 0 || failure != std::errc() || end != number.data() + number.size()) return false;
  sum_ns += value * static_cast<long double>(ns);
  return true;
}

}  // namespace

base::Result<std::uint64_t> parse_integer(std::string_view text, const Range& range,
                                          std::string_view unit) {
  std::uint64_t value = 0;
  if (is_digits(text)) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure == std::errc() && contains(range, value)) return value;
  }
  std::string what = std::string(range.or_zero ? "0 or " : "") + "a whole number from " +
                     std::to_string(range.low) + " to " + std::to_string(range.high);
  if (!unit.empty()) what.append(" (").append(unit).append(")");
  return must_be(what, text);
}

base::Result<std::uint64_t> parse_mode(std::string_view text) {
  const std::size_t prefix_bytes = text.substr(0, 2) == "0o" ? 2 : text.substr(0, 1) == "0" ? 1 : 0;
  const std::string_view digits = text.substr(prefix_bytes);
  std::uint64_t value = 0;
  if (prefix_bytes != 0 && is_digits(digits)) {
    const char* last = digits.data() + digits.size();
    const auto [end, failure] = std::from_chars(digits.data(), last, value, 8);
    if (failure == std::errc() && end == last && value <= 0777) return value;
  }
  return must_be("permission bits in octal with a leading 0, from 0000 to 0777, such as 0660",
                 text);
}

base::Result<double> parse_number(std::string_view text, double low, double high) {
  std::string_view digits = text;
  if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
  const bool plain =
      !digits.empty() && digits.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  double value = 0;
  if (plain) {
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = failure == std::errc() && end == digits.data() + digits.size();
    if (whole && std::isfinite(value) && value >= low && value <= high) return value;
  }
  constexpr double kMost = std::numeric_limits<double>::max();
  if (low <= -kMost && high >= kMost) return must_be("a finite number", text);
  if (high >= kMost) return must_be("a finite number, at least " + format_number(low), text);
  return must_be("a number from " + format_number(low) + " to " + format_number(high), text);
}

base::Result<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return must_be("true or false", text);
}

base::Result<std::uint64_t> parse_duration(std::string_view text, std::uint64_t unit_ns,
                                           const Range& range) {
  const std::string bounds = std::string(range.or_zero ? "0s or " : "") + "from " +
                             format_duration(range.low * unit_ns) + " to " +
                             format_duration(range.high * unit_ns);
  if (is_digits(text)) {
    return must_be("a duration " + bounds +
                       " with its unit (us, ms, s, min or h): " + std::string(text.substr(0, 20)) +
                       "s or " + std::string(text.substr(0, 20)) + "ms?",
                   text);
  }
  long double sum_ns = 0;
  std::string_view rest = text;
  bool good = !text.empty();
  while (good && !rest.empty()) good = take_part(rest, sum_ns);
  // Beyond 2^62 ns nothing below is exact; no setting is near it.
  if (!good || sum_ns > 4.6e18L)
    return must_be("a duration " + bounds + ", such as 500ms, 45s, 30min or 1h", text);

  const auto ns = static_cast<std::uint64_t>(std::llround(sum_ns));
  if (ns % unit_ns != 0)
    return must_be("a whole number of " + format_duration(unit_ns).substr(1), text);
  if (!contains(range, ns / unit_ns)) return must_be("a duration " + bounds, text);
  return ns / unit_ns;
}

std::string format_duration(std::uint64_t ns) {
  if (ns == 0) return "0s";
  for (const Unit* unit = std::end(kUnits); unit-- != std::begin(kUnits);) {
    if (ns % unit->ns == 0) return std::to_string(ns / unit->ns) + std::string(unit->name);
  }
  return std::to_string(ns) + "ns";
}

std::string format_mode(std::uint64_t mode) {
  char text[24];
  std::snprintf(text, sizeof text, "%04llo", static_cast<unsigned long long>(mode));
  return text;
}

std::string format_number(double value) {
  char text[64];
  const auto [end, failure] = std::to_chars(text, text + sizeof text, value);
  return failure == std::errc() ? std::string(text, end) : "0";
}

std::string format_text(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (byte < 0x20 || byte == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += letter;
    }
  }
  return out + "\"";
}

}  // namespace pickd::config

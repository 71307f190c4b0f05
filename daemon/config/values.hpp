// Values: text to numbers, durations and booleans, strictly, and back.
//
// The same rules for the file and for environment variables. An error's text says what would be
// right and what was found ("must be ... , is `x`"); the caller adds place and key. Knows no
// settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/base/result.hpp"

namespace pickd::config {

struct Range {
  std::uint64_t low = 0;
  std::uint64_t high = UINT64_MAX;
  bool or_zero = false;  // 0 is allowed beside [low, high]
};

// Decimal digits only. `unit` is for the message, empty for none.
base::Result<std::uint64_t> parse_integer(std::string_view text, const Range& range,
                                          std::string_view unit);
// Permission bits: octal with a leading 0 ("0660", "0o660"), so that a decimal number is not taken
// for one.
base::Result<std::uint64_t> parse_mode(std::string_view text);
// Decimal or scientific; finite, in [low, high].
base::Result<double> parse_number(std::string_view text, double low, double high);
base::Result<bool> parse_boolean(std::string_view text);
// One or more numbers with a unit each: ns, us, ms, s, min (or m), h, as in "500ms", "1.5s",
// "1h30min". `range` is in units of `unit_ns`, and so is the result, which must be whole.
base::Result<std::uint64_t> parse_duration(std::string_view text, std::uint64_t unit_ns,
                                           const Range& range);

// The shortest notation that parse_duration reads as this: "30min", "1500ms", "0us" is "0s".
std::string format_duration(std::uint64_t ns);
std::string format_mode(std::uint64_t mode);
// Reads back as exactly the same number.
std::string format_number(double value);
// In double quotes, for YAML.
std::string format_text(std::string_view text);

}  // namespace pickd::config

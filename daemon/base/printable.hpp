// Text of a stranger as it may stand in a log: a line break would forge a line there, an escape
// sequence would be obeyed by the terminal that shows it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace pickd::base {

inline bool is_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);  // char has a sign here and none there
  return byte < ' ' || byte == 0x7F;
}

// At most `bytes_max` bytes of it; what is not printable ASCII is a question mark, and so is a
// quote, which ends the text where it is quoted.
inline std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string clean(text.substr(0, bytes_max));
  std::replace_if(
      clean.begin(), clean.end(),
      [](char letter) { return letter < ' ' || letter > '~' || letter == '"'; }, '?');
  return clean;
}

}  // namespace pickd::base

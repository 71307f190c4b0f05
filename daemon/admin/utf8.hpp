// Names are bytes; what is shown to the world is UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pickd::admin {

// Bytes of the UTF-8 character at the front of `text`; 0: there is none.
inline std::size_t utf8_bytes(std::string_view text) {
  const auto at = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  // Too long a form, a surrogate, beyond the last character.
  if ((first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F) ||
      (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F)) {
    return 0;
  }
  return bytes;
}

// `text` with a question mark for each byte that is part of no character.
inline std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    if (bytes == 0) {
      out += '?';
      text.remove_prefix(1);
      continue;
    }
    out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace pickd::admin

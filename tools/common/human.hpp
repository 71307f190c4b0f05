// Numbers for people: bytes, durations and shares in few characters. For output only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pickd::tools {

std::string human_bytes(std::uint64_t bytes);      // "256 MiB"
std::string human_ms(std::uint64_t milliseconds);  // "3.2 s", "2 h 5 min"

// Text from elsewhere for a terminal: what could steer it is replaced by '?'.
std::string printable(std::string_view text);

}  // namespace pickd::tools

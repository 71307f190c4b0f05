#include "tools/common/human.hpp"

#include <array>
#include <cstdio>

namespace pickd::tools {

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text,
                value >= 100 || value == static_cast<std::uint64_t>(value) ? "%.0f %s" : "%.1f %s",
                value, kUnits[unit]);
  return text;
}

std::string human_ms(std::uint64_t milliseconds) {
  char text[48];
  const std::uint64_t seconds = milliseconds / 1000;
  if (milliseconds < 1000) {
    std::snprintf(text, sizeof text, "%llu ms", static_cast<unsigned long long>(milliseconds));
  } else if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(milliseconds) / 1000);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%llu min %llu s",
                  static_cast<unsigned long long>(seconds / 60),
                  static_cast<unsigned long long>(seconds % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu h %llu min",
                  static_cast<unsigned long long>(seconds / 3600),
                  static_cast<unsigned long long>(seconds / 60 % 60));
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& letter : out) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7F') letter = '?';
  }
  return out;
}

}  // namespace pickd::tools

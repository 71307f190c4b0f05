#include "daemon/state/boot_id.hpp"

#include <cctype>
#include <cstring>
#include <fstream>
#include <string>

namespace pickd::state {

void read_boot_id(std::uint8_t (&boot_id)[16]) {
  std::memset(boot_id, 0, sizeof boot_id);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!std::getline(file, text)) return;
  std::size_t nibble = 0;
  for (const char letter : text) {
    if (std::isxdigit(static_cast<unsigned char>(letter)) == 0 || nibble == 32) continue;
    const int value = std::isdigit(static_cast<unsigned char>(letter)) != 0
                          ? letter - '0'
                          : std::tolower(static_cast<unsigned char>(letter)) - 'a' + 10;
    boot_id[nibble / 2] = static_cast<std::uint8_t>(boot_id[nibble / 2] << 4 | value);
    ++nibble;
  }
}

}  // namespace pickd::state

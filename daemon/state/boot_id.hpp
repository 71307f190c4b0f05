// The kernel's boot id: a state file of another boot is never trusted.
#pragma once

#include <cstdint>

namespace pickd::state {

// Fills 16 bytes; zeros when the kernel does not tell.
void read_boot_id(std::uint8_t (&boot_id)[16]);

}  // namespace pickd::state

// Descriptors: as many as the system lets the daemon have, and a warning where its own limits allow
// more clients and channels than that: whoever takes the last descriptor then keeps all others out,
// before any limit of a user holds. Knows the configuration only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/config/config.hpp"

namespace pickd::service {

// What the configured clients and channels may take, and what the daemon needs beside them.
std::uint64_t descriptors_wanted(const config::ListenConfig& listen);

// What is wrong with `limit` descriptors and what would be right; none where they are enough.
std::optional<std::string> why_too_few_descriptors(const config::ListenConfig& listen,
                                                   std::uint64_t limit);

// Raises the soft limit to the hard one. Returns it.
std::uint64_t raise_descriptor_limit();

}  // namespace pickd::service

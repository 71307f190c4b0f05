// A request in a JSON file, as the record that a client would submit: for a dry run of its pick.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/common/control_client.hpp"

namespace pickd::ctl {

struct RequestRecord {
  std::vector<std::byte> bytes;
  bool cut = false;  // the prompt has more blocks than were taken
};

// Of the file at `path`, "-": of standard input. The prompt is hashed here and does not leave.
// Throws std::runtime_error with what is wrong.
RequestRecord read_request(const std::string& path, const tools::ControlClient& control);

}  // namespace pickd::ctl

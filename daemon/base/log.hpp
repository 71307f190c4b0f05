// The log: spdlog to standard error, one line an event. Never called on the request path: count
// there, and let the control thread say it. What would break a line or move a terminal's cursor is
// written as a question mark, wherever it came from.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace pickd::base {

// `level`: trace, debug, info, warn, error, off. Thread-safe after the call.
void start_log(const std::string& level);

}  // namespace pickd::base

// Paths into APIs.
#pragma once

#include <string_view>

#include "pickd/body.h"

namespace pickd::body {

// By the last known words of the path, whatever stands before and behind them: a query, a sub-path,
// a gateway's own prefix.
pickd_body_api api_of(std::string_view path);

}  // namespace pickd::body

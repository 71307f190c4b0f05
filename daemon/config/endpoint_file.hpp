// An endpoint file: a list of endpoints in a file of its own, YAML or JSON, as strict as the
// configuration. Reads the file; no clock, no globals; any thread.
#pragma once

#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"

namespace pickd::config {

// The endpoints of `path`: a map with `endpoints:`, or the list alone. Entries are those of the
// configuration without `pool`, which becomes `pool`. Errors: every mistake with file, line and key
// (-EINVAL); -ENOENT and friends; -EFBIG. An empty file is refused: it is what a writer leaves
// behind who was interrupted; `endpoints: []` says that there are none.
base::Result<std::vector<EndpointConfig>> read_endpoint_file(const std::string& path,
                                                             const std::string& pool);

}  // namespace pickd::config

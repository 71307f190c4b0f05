// The standard set of the store benchmark: a fixed choice of runs, one table, and each target
// beside its figure.
#pragma once

#include <string>

namespace pickd::bench {

// Measures and prints; takes two to three minutes. `trace`: a file, or empty for a workload made
// here. Throws std::runtime_error when the trace cannot be read or memory is missing.
void measure_standard_set(const std::string& trace, bool json);

}  // namespace pickd::bench

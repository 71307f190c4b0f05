// What a second thread adds to the prefix table, beside what this machine gives to two threads at
// all.
#pragma once

#include "tools/bench/store_measure.hpp"

namespace pickd::bench {

// Each a ratio of block operations a second to those of one thread; medians of rounds taken in
// turns. Near 1 apart: there was no second core (other load, or two threads of one core).
struct ScalingFigures {
  double shared = 0;  // two threads on one table
  double apart = 0;   // two threads, each on a table of its own of half the size: nothing shared
};

// `whole` makes the table of the shared runs, `half` one of half its size. Takes some seconds.
ScalingFigures measure_scaling(const MakeSubject& whole, const MakeSubject& half,
                               const StoreWorkload& workload, const StoreOptions& options);

}  // namespace pickd::bench

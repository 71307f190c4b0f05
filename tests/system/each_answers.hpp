// Waiting for a load of several threads, each of which counts its answers by kind.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/system/support.hpp"

namespace pickd::systests {

// True when each worker of a load has had so many more answers of this kind.
template <typename Workers>
bool each_answers(const Workers& workers, bool degraded, std::uint64_t more) {
  std::vector<std::uint64_t> before;
  for (const auto& worker : workers) before.push_back(worker->answers(degraded));
  return eventually([&] {
    for (std::size_t at = 0; at < workers.size(); ++at) {
      if (workers[at]->answers(degraded) < before[at] + more) return false;
    }
    return true;
  });
}

}  // namespace pickd::systests

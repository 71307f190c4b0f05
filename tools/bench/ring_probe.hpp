// The floor under a pick: one round trip over a bare ring pair, a record out and an answer back,
// copied on both sides, between two processes that do nothing else. The other end spins only while
// a probe runs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "tools/common/samples.hpp"

namespace pickd::bench {

class RingProbe {
 public:
  // Forks the echo process: make it before threads are started. Throws std::runtime_error.
  RingProbe();
  ~RingProbe();
  RingProbe(const RingProbe&) = delete;
  RingProbe& operator=(const RingProbe&) = delete;

  // Adds `count` round-trip times in nanoseconds.
  void run(std::size_t bytes, std::size_t answer_bytes, std::size_t count, tools::Samples& samples);

 private:
  struct Shared;
  static void echo(Shared* shared);

  Shared* shared_ = nullptr;
  pid_t echo_ = -1;
};

}  // namespace pickd::bench

// Failed requests of an endpoint, as workers note them: one failure makes a ready endpoint suspect
// at once; what becomes of it is engine_watch.hpp's to decide.
#pragma once

#include <algorithm>

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

// A request failed at this generation of the endpoint. Any worker.
inline void note_failure(abi::EndpointRecord& record, std::uint32_t generation) {
  std::uint64_t seen = record.failures.load(std::memory_order_relaxed);
  while (true) {
    const abi::FailureWord word{seen};
    if (word.generation() != (generation & abi::kGenerationMask)) return;  // an engine that is gone
    const std::uint32_t in_a_row = std::min(word.in_a_row() + 1, abi::FailureWord::kInARowMax);
    const auto next = abi::FailureWord::make(generation, in_a_row, word.all() + 1);
    // Release; partner: the acquire of EngineWatch::settle(), which looks here again after it has
    // made an endpoint ready.
    if (record.failures.compare_exchange_weak(seen, next.bits, std::memory_order_seq_cst)) break;
  }
  auto ready = static_cast<std::uint32_t>(abi::EndpointState::kReady);
  // Fails when it is anything but ready: then it is no better off than suspect already, or an
  // operator's word holds. A new generation between the two steps is suspect for a turn.
  record.state.compare_exchange_strong(
      ready, static_cast<std::uint32_t>(abi::EndpointState::kSuspect), std::memory_order_seq_cst);
}

// A request ended well there. Any worker; one load where nothing had failed.
inline void note_success(abi::EndpointRecord& record, std::uint32_t generation) {
  std::uint64_t seen = record.failures.load(std::memory_order_relaxed);
  while (true) {
    const abi::FailureWord word{seen};
    if (word.in_a_row() == 0 || word.generation() != (generation & abi::kGenerationMask)) return;
    const auto next = abi::FailureWord::make(generation, 0, word.all());
    // Partner: EngineWatch::turn().
    if (record.failures.compare_exchange_weak(seen, next.bits, std::memory_order_release)) return;
  }
}

}  // namespace pickd::endpoints

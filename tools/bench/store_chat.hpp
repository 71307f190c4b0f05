// A workload for those who have no trace: chats of several turns that begin with one of a few
// shared prompts, interleaved. Made from a seed alone, so two runs replay the same.
#pragma once

#include <cstdint>

#include "tools/bench/trace.hpp"

namespace pickd::bench {

// As a trace: block ids are 512 tokens each, equal ids are equal blocks with equal history.
Trace make_chat_trace(std::uint64_t seed, std::uint32_t requests);

}  // namespace pickd::bench

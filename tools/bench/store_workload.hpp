// The prompts of the store benchmark, made from a trace: each 512-token id becomes `expand` chained
// keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/store.hpp"
#include "tools/bench/store_subject.hpp"

namespace pickd::bench {

// Room for one prompt; one for each thread.
struct PromptBuffer {
  std::vector<std::uint64_t> keys;
  std::string text;
};

class StoreWorkload {
 public:
  // Throws std::runtime_error when the trace cannot be read.
  explicit StoreWorkload(const StoreOptions& options);

  const std::string& name() const { return name_; }  // of the trace, for people
  std::size_t requests() const { return starts_.size() - 1; }
  std::uint64_t blocks() const { return keys_.size(); }
  std::uint32_t block_bytes() const { return block_bytes_; }  // of text

  // Request `at` of replay `loop`: every replay asks about other content than the ones before.
  StorePrompt prompt(std::size_t at, std::uint32_t loop, bool with_text,
                     PromptBuffer& buffer) const;
  // The common prompt alone; empty without one.
  StorePrompt shared(PromptBuffer& buffer) const;

 private:
  std::string name_;
  std::uint32_t expand_;
  std::uint32_t shared_blocks_;
  std::uint32_t block_bytes_;
  std::vector<std::uint64_t> keys_;    // of all requests, one behind the other
  std::vector<std::uint64_t> starts_;  // of request i in keys_; one more at the end
  std::vector<std::uint64_t> ids_;     // the same of the trace's ids
  std::vector<std::uint64_t> id_starts_;
};

}  // namespace pickd::bench

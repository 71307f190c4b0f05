// Explanation: a trace (trace.hpp) read back into something to show. Allocates: for the control
// thread and for tests, never for the request path.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/pick/trace.hpp"

namespace pickd::pick {

struct Explanation {
  struct LeftOutEndpoint {
    std::uint32_t id = 0;
    std::string name;
    LeftOut why = LeftOut::kNotReady;
    std::uint32_t state = 0;  // abi::EndpointState
  };
  struct Candidate {
    std::uint32_t id = 0;
    std::uint32_t generation = 0;
    std::string name;
    std::optional<std::uint32_t> dropped_by;   // index of the filter; nothing: it stayed
    std::array<float, kColumns> columns = {};  // NaN: unknown, or never filled for it
    std::vector<float> scores;                 // of each scorer; kNoScore: not known to it
    double sum = 0;                            // of those that stayed
    std::uint32_t place = 0;                   // in the result, 1 the winner; 0: not in it
  };
  struct UsedFilter {
    std::string name;
    std::uint32_t dropped = 0;
  };
  struct UsedScorer {
    std::string name;
    double weight = 0;
    bool left_out = false;  // it failed or gave a NaN
  };
  struct RunStage {
    Stage stage = Stage::kPrimary;
    std::string profile;
    bool least_bad = false;  // nobody was ready
    ColumnSet columns = 0;   // that were filled
    std::vector<UsedFilter> filters;
    std::vector<UsedScorer> scorers;
    std::vector<Candidate> candidates;
    std::uint32_t ties = 0;  // that share the first place; 0: nobody was ranked, or without scores
  };

  TracedPick pick = {};
  std::string model;
  std::string adapter;
  std::string session;
  std::string request_id;
  std::vector<LeftOutEndpoint> left_out;
  std::vector<RunStage> stages;
  std::string refused;  // why nobody was picked; empty: somebody was
  TracedResult result = {};
};

// Nothing when `trace` is not a whole trace.
std::optional<Explanation> explain(std::span<const std::uint64_t> trace);

}  // namespace pickd::pick

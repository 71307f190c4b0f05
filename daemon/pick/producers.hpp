// Producers fill columns, once a pick, and only those that a configured plugin reads.
//
// A new column is an entry in Column, a function here and a line in the table of producers.cpp.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"
#include "daemon/pick/columns.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/pick/request.hpp"
#include "daemon/pick/session_table.hpp"
#include "daemon/pick/source.hpp"
#include "daemon/prefix/prefix_table.hpp"

namespace pickd::pick {

// What producers read besides the request. Belongs to the pick core.
struct ProducerSources {
  const abi::EndpointRecord* records;
  const prefix::PrefixTable* table;
  const SessionTable* sessions;
  std::uint32_t block_tokens;
  std::uint32_t blocks_min;          // a shorter match counts as none
  const Flights* flights = nullptr;  // nullptr: nothing is predicted
};

// `columns` and those that they are made of.
ColumnSet with_made_of(ColumnSet columns);

// Fills the columns of `wanted` for all candidates. `coefficients` are the newest; nullptr where
// nothing is predicted.
void produce(ColumnSet wanted, const ProducerSources& sources, const SourceSettings& settings,
             const PickRequest& request, std::uint64_t tick,
             const latency::Coefficients* coefficients, std::uint64_t session_ttl_ticks,
             prefix::MatchScratch& scratch, Candidates& candidates);

// Tokens that `match_blocks` leading blocks of this prompt stand for.
std::uint32_t match_tokens_of(const PickRequest& request, std::uint32_t match_blocks,
                              std::uint32_t block_tokens);

}  // namespace pickd::pick

// Predictions: latency and cost of this request at each candidate, from the live load, what engines
// told of others' requests, and the newest coefficients.
#pragma once

#include <cstdint>

#include "daemon/pick/columns.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::pick {

inline constexpr ColumnSet kPredictionColumns = column_bit(Column::kPredictedTtft) |
                                                column_bit(Column::kPredictedItl) |
                                                column_bit(Column::kCost);

// What a prediction is made from, besides the request.
struct PredictionSources {
  const Flights& flights;
  const latency::Coefficients& coefficients;
  const abi::EndpointRecord* records;
  std::uint32_t block_tokens;
  std::uint64_t tick;
};

// Fills the three columns; reads kUncachedTokens.
void produce_predictions(const PredictionSources& sources, const PickRequest& request,
                         Candidates& candidates);

// What is handed through the reservation of a pick of candidate `at`.
PickFacts facts_of(const PredictionSources& sources, const PickRequest& request,
                   const Candidates& candidates, std::size_t at);

}  // namespace pickd::pick

// Predictions: latency and cost of this request at each candidate, from the live load and the
// newest coefficients.
#pragma once

#include <cstdint>

#include "daemon/pick/columns.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::pick {

inline constexpr ColumnSet kPredictionColumns = column_bit(Column::kPredictedTtft) |
                                                column_bit(Column::kPredictedItl) |
                                                column_bit(Column::kCost);

// Fills the three columns; reads kUncachedTokens.
void produce_predictions(const Flights& flights, const latency::Coefficients& coefficients,
                         const PickRequest& request, std::uint32_t block_tokens,
                         Candidates& candidates);

// What is handed through the reservation of a pick of candidate `at`.
PickFacts facts_of(const Flights& flights, const latency::Coefficients& coefficients,
                   const PickRequest& request, std::uint32_t block_tokens,
                   const Candidates& candidates, std::size_t at);

}  // namespace pickd::pick

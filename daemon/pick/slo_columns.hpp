// SLO columns: predicted percentiles, how much of the latency that a request wants would be left at
// each candidate, and whom it would make late there.
#pragma once

#include "daemon/pick/columns.hpp"
#include "daemon/pick/flights.hpp"
#include "daemon/pick/request.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

inline constexpr ColumnSet kSloColumns =
    columns_of(Column::kTtftPercentile, Column::kItlPercentile, Column::kTtftHeadroom,
               Column::kItlHeadroom, Column::kMissesOfOthers);

// Fills these columns; reads those of predictions. A percentile is unknown while the model of the
// endpoint's class is not ready. A headroom is
//   SLO - predicted TTFT
//   min(SLO, tightest ITL promised to what runs there) x buffer - predicted ITL
// where predicted is the percentile or, at an endpoint whose class is not ready, the mean; it is
// unknown where nothing was asked for.
void produce_slo(const Flights& flights, const latency::Coefficients& coefficients,
                 const PickRequest& request, const SourceSettings& settings,
                 Candidates& candidates);

}  // namespace pickd::pick

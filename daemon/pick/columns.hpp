// The candidates of one pick as a structure of arrays: who they are, and one column a measure.
//
// Producers fill columns, filters clear candidates, scorers read columns. NaN in a column is
// "unknown", never 0 and never full. A Candidates object belongs to one worker and is reused for
// every pick.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "abi/limits.hpp"

namespace pickd::endpoints {
struct TopologyEndpoint;
}

namespace pickd::pick {

enum class Column : std::uint32_t {
  kMatchBlocks,       // leading prefix blocks the endpoint is assumed to hold
  kUncachedTokens,    // prompt tokens it would have to prefill
  kInflightRequests,  // own reservations there, and requests of others as told
  kInflightTokens,    // uncached tokens of own reservations without a first token
  kInflightPrompts,   // prompt tokens of own reservations, cached ones too
  kWaiting,           // requests queued in the engine, as told
  kRunning,           // requests running in the engine, as told
  kKvUse,             // share of the engine's KV cache in use, 0..1, as told
  kAdapter,  // 1 loaded, 0.8 room for it, 0.6 being loaded, 0 no room; NaN: no adapter or not told
  kSession,  // 1 the session's endpoint, else 0
  kPredictedTtft,   // seconds
  kPredictedItl,    // seconds
  kCost,            // seconds: see latency/cost.hpp
  kTtftPercentile,  // seconds; unknown while no model is ready
  kItlPercentile,   // the same
  kTtftHeadroom,  // seconds left of what the request wants, negative: too late; see slo_columns.hpp
  kItlHeadroom,   // the same
  kMissesOfOthers,  // requests running there that this one is expected to make late
  kCount
};
inline constexpr std::size_t kColumns = static_cast<std::size_t>(Column::kCount);

using ColumnSet = std::uint32_t;  // bit i: Column i
constexpr ColumnSet column_bit(Column column) { return 1U << static_cast<std::uint32_t>(column); }
template <typename... Columns>
constexpr ColumnSet columns_of(Columns... columns) {
  return (ColumnSet{0} | ... | column_bit(columns));
}
const char* column_name(Column column);  // for documents and explanations

inline constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

class Candidates {
 public:
  static constexpr std::size_t kMax = abi::kEndpointIdsMax;

  Candidates() : arrays_(std::make_unique<Arrays>()) {}

  std::size_t count = 0;

  std::uint16_t* ids() { return arrays_->ids; }
  std::uint16_t* latency_classes() { return arrays_->latency_classes; }
  std::uint64_t* lives() { return arrays_->lives; }  // LifeWord bits as this pick saw them
  const endpoints::TopologyEndpoint** endpoints() { return arrays_->endpoints; }
  std::span<float> column(Column column) {
    return {arrays_->columns[static_cast<std::size_t>(column)], count};
  }
  std::span<const float> column(Column column) const {
    return {arrays_->columns[static_cast<std::size_t>(column)], count};
  }
  const std::uint16_t* ids() const { return arrays_->ids; }
  const std::uint16_t* latency_classes() const { return arrays_->latency_classes; }
  const std::uint64_t* lives() const { return arrays_->lives; }
  const endpoints::TopologyEndpoint* const* endpoints() const { return arrays_->endpoints; }
  std::span<std::uint32_t> match_blocks() { return {arrays_->match_blocks, count}; }
  std::span<const std::uint32_t> match_blocks() const { return {arrays_->match_blocks, count}; }
  double* sums() { return arrays_->sums; }
  const double* sums() const { return arrays_->sums; }
  float* scores() { return arrays_->scores; }     // of the scorer at work
  std::uint8_t* keep() { return arrays_->keep; }  // of the filter at work: 0 clears

  // Drops the candidates whose keep() is 0 from every array, columns of `produced` included.
  void compact(ColumnSet produced);

 private:
  struct Arrays {
    std::uint16_t ids[kMax];
    std::uint16_t latency_classes[kMax];
    std::uint8_t keep[kMax];
    std::uint64_t lives[kMax];
    const endpoints::TopologyEndpoint* endpoints[kMax];
    std::uint32_t match_blocks[kMax];
    double sums[kMax];
    float scores[kMax];
    float columns[kColumns][kMax];
  };
  std::unique_ptr<Arrays> arrays_;
};

}  // namespace pickd::pick

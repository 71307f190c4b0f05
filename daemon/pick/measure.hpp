// A number of an endpoint by the name that operators write: a column, or a label that is a number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

class Measure {
 public:
  // The names: active-requests, active-tokens, running-requests, waiting-queue,
  // kv-cache-utilization, the engines' and the Endpoint Picker's words for these, and "label:KEY".
  // Nothing: no such measure.
  static std::optional<Measure> named(std::string_view name);
  static constexpr std::string_view kNames =
      "active-requests, active-tokens, running-requests, waiting-queue, kv-cache-utilization, "
      "label:KEY";
  static constexpr ColumnSet kColumns =
      columns_of(Column::kInflightRequests, Column::kInflightTokens, Column::kRunning,
                 Column::kWaiting, Column::kKvUse);

  ColumnSet columns() const { return label_.empty() ? column_bit(column_) : 0; }
  // Of the candidate at `at`; NaN: unknown.
  float of(const Candidates& candidates, std::size_t at) const;

 private:
  Column column_ = Column::kCount;
  std::string label_;
};

}  // namespace pickd::pick

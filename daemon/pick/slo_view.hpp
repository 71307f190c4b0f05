// SloView: one look at what a request wants and what each candidate would leave of it, for the
// plugins that go by it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/pick/plugin.hpp"
#include "daemon/pick/slo_columns.hpp"

namespace pickd::pick {

class SloView {
 public:
  static constexpr ColumnSet kColumns = kSloColumns;

  explicit SloView(const PickContext& context)
      : ttft_headroom_(context.candidates.column(Column::kTtftHeadroom)),
        itl_headroom_(context.candidates.column(Column::kItlHeadroom)),
        slo_ttft_s_(context.request.slo_ttft_ms * 1e-3F),
        slo_itl_s_(context.request.slo_itl_ms * 1e-3F) {
    if (!context.request.predict) return;
    ttft_ready_ = any_known(context.candidates.column(Column::kTtftPercentile));
    itl_ready_ = any_known(context.candidates.column(Column::kItlPercentile));
  }

  bool ttft_ready() const { return ttft_ready_; }
  // Some model can be trusted, and the request lets itself be predicted.
  bool ready() const { return ttft_ready_ || itl_ready_; }
  // The request wants something that a model can say something of.
  bool wanted() const { return (slo_ttft_s_ > 0 && ttft_ready_) || (slo_itl_s_ > 0 && itl_ready_); }

  // What is left of TTFT and ITL as a share of what was wanted; below 0: too late. 1 where nothing
  // was wanted: the whole is left.
  float ttft_share(std::size_t at) const {
    return slo_ttft_s_ > 0 && ttft_ready_ ? share(ttft_headroom_[at], slo_ttft_s_) : 1;
  }
  // Others' promises count, too: of what the tightest of them leaves.
  float itl_share(std::size_t at) const {
    if (!itl_ready_ || std::isnan(itl_headroom_[at])) return 1;
    return share(itl_headroom_[at], slo_itl_s_ > 0 ? slo_itl_s_ : kItlUnitS);
  }
  bool in_time(std::size_t at) const { return ttft_share(at) >= 0 && itl_share(at) >= 0; }

 private:
  // What a deficit of ITL is measured by where the request itself wants none.
  static constexpr float kItlUnitS = .05F;

  static bool any_known(std::span<const float> values) {
    return std::any_of(values.begin(), values.end(),
                       [](float value) { return !std::isnan(value); });
  }
  // Not predicted at all: far too late.
  static float share(float headroom_s, float wanted_s) {
    return std::isnan(headroom_s) ? -kFarTooLate : headroom_s / wanted_s;
  }
  static constexpr float kFarTooLate = 1e6F;

  std::span<const float> ttft_headroom_;
  std::span<const float> itl_headroom_;
  float slo_ttft_s_;
  float slo_itl_s_;
  bool ttft_ready_ = false;
  bool itl_ready_ = false;
};

}  // namespace pickd::pick

// Health of one endpoint: a state machine of what scrapes and reports say, with the tick an
// argument. Pure; knows no record, no pool, no clock. The rules of a pool ("never the last one")
// and the words are in engine_watch.hpp.
//
// Two tracks, and the endpoint is as good as the worse of them:
//   answers   does its server answer? Failed scrapes and connect errors; a good scrape ends it.
//   service   does it serve? Failed reports in a row; a request that ends well ends it. A good
//             scrape does not: an engine whose every request fails may well have a metrics page. It
//             is tried again after a pause that doubles with each failure.
// One failure of either: suspect at once. Three in a row: down.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

struct HealthRules {
  std::uint32_t failures_down = 3;     // in a row, from which an endpoint is down
  std::uint32_t probe_ticks_min = 20;  // pause before the first probe of a failed one
  std::uint32_t probe_ticks_max = 600;
  // Whether anybody scrapes it. If so it joins as starting and is ready with the first answer;
  // else it joins as ready, and the pause alone brings it back.
  bool scraped = true;
};

class Health {
 public:
  explicit Health(const HealthRules& rules = {}) : rules_(rules) {}

  // A scrape was answered: by a page that could be read, or by one that could not (`readable`
  // false: 404, no metrics page). The server lives either way.
  void answered(std::uint64_t tick);
  // No answer: connect error, time-out, reset, 5xx.
  void not_answered(std::uint64_t tick);
  // What reports said since the last call: `in_a_row` failures without a request that ended well
  // between or after them; `any` failures at all since then.
  void served(std::uint32_t in_a_row, bool any, std::uint64_t tick);

  // ready, suspect, down or starting; never draining, which is an operator's word.
  abi::EndpointState state(std::uint64_t tick) const;
  // When the next scrape of it should be sent, for an interval of `interval_ticks`.
  std::uint64_t probe_tick(std::uint64_t last_tick, std::uint32_t interval_ticks) const;
  std::uint32_t failures() const { return failures_; }

 private:
  std::uint32_t pause_ticks(std::uint32_t failures) const;

  HealthRules rules_;
  bool answered_ever_ = false;
  std::uint32_t failures_ = 0;          // scrapes without an answer, in a row
  std::uint32_t service_failures_ = 0;  // failed reports in a row
  std::uint64_t failed_tick_ = 0;       // of the newest failed report
  std::uint64_t answered_tick_ = 0;     // of the newest answer
};

}  // namespace pickd::endpoints

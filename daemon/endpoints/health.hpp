// Health of one endpoint: a state machine of what scrapes and reports say, with the tick an
// argument. Pure; knows no record, no other endpoint, no clock. Who is picked when nobody is ready
// is the pick's to say (gather.hpp); the words are in engine_watch.hpp.
//
// Two tracks, and the endpoint is as good as the worse of them:
//   answers   does its server answer? Failed scrapes; the next answer ends them.
//   service   does it serve? Failed reports; a request that ends well ends them. An answered scrape
//             does not: an engine whose every request fails may well have a metrics page. It is
//             tried again after a pause that doubles with each failed try.
// One failure of either: suspect at once. Three in a row: down.
#pragma once

#include <cstdint>

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

struct HealthRules {
  std::uint32_t failures_down = 3;  // in a row, from which an endpoint is down
  // Pause before the first try of a failed one, and the longest.
  std::uint32_t pause_ticks_min = 20;
  std::uint32_t pause_ticks_max = 600;
  // Whether somebody scrapes it. If so it joins as starting and is ready with the first answer;
  // else it joins as ready, and the pause alone brings it back.
  bool scraped = true;
};

class Health {
 public:
  explicit Health(const HealthRules& rules = {}) : rules_(rules) {}
  // Goes on from the word of a daemon before this one.
  Health(const HealthRules& rules, abi::EndpointState before);

  // A scrape was answered: its server lives.
  void answered(std::uint64_t tick);
  // Connect error, time-out, reset, an answer that says that it is ill.
  void not_answered();
  // What reports say: `in_a_row` failed since a request ended well; `more`: some of them since the
  // last call.
  void served(std::uint32_t in_a_row, bool more, std::uint64_t tick);

  // ready, suspect, down or starting; never draining, which is an operator's word.
  abi::EndpointState state(std::uint64_t tick) const;
  // When the next scrape should be sent after one at `last_tick`, for this interval: sooner after a
  // failure, later and later while it is down.
  std::uint64_t probe_tick(std::uint64_t last_tick, std::uint32_t interval_ticks) const;

 private:
  bool may_try(std::uint64_t tick) const;
  std::uint32_t pause_ticks(std::uint32_t doublings) const;

  HealthRules rules_;
  bool answered_ever_ = false;
  std::uint32_t silences_ = 0;  // scrapes without an answer, in a row
  std::uint32_t failures_ = 0;  // failed reports in a row
  std::uint32_t tries_ = 0;     // tries that failed, the first failure included
  std::uint64_t failed_tick_ = 0;
  std::uint64_t answered_tick_ = 0;
};

}  // namespace pickd::endpoints

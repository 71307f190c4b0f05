#include "daemon/endpoints/health.hpp"

#include <algorithm>

namespace pickd::endpoints {

namespace {

using abi::EndpointState;

EndpointState by_failures(std::uint32_t failures, std::uint32_t failures_down) {
  if (failures == 0) return EndpointState::kReady;
  return failures < failures_down ? EndpointState::kSuspect : EndpointState::kDown;
}

}  // namespace

Health::Health(const HealthRules& rules, abi::EndpointState before) : rules_(rules) {
  // What it was holds until somebody knows better; of what failed there, nothing is known.
  answered_ever_ = before != EndpointState::kStarting;
  if (!rules.scraped) return;
  if (before == EndpointState::kSuspect) silences_ = 1;
  if (before == EndpointState::kDown) silences_ = rules.failures_down;
}

void Health::answered(std::uint64_t tick) {
  answered_ever_ = true;
  answered_tick_ = tick;
  silences_ = 0;
}

void Health::not_answered() { silences_ = std::min(silences_ + 1, 1000U); }

void Health::served(std::uint32_t in_a_row, bool more, std::uint64_t tick) {
  if (more && in_a_row != 0) {
    // A burst of requests that fail together is one failed try.
    if (failures_ == 0 || may_try(tick)) tries_ = std::min(tries_ + 1, 1000U);
    failed_tick_ = tick;
  }
  failures_ = in_a_row;
  if (failures_ == 0) tries_ = 0;
}

bool Health::may_try(std::uint64_t tick) const {
  if (tick < failed_tick_ + pause_ticks(tries_ == 0 ? 0 : tries_ - 1)) return false;
  // Where there are scrapes, one that was answered after the failure has to say that it lives.
  return !rules_.scraped || answered_tick_ > failed_tick_;
}

abi::EndpointState Health::state(std::uint64_t tick) const {
  if (rules_.scraped && !answered_ever_) return EndpointState::kStarting;
  const EndpointState answers = by_failures(silences_, rules_.failures_down);
  const EndpointState service =
      may_try(tick) ? EndpointState::kReady : by_failures(failures_, rules_.failures_down);
  if (answers == EndpointState::kReady) return service;
  return service == EndpointState::kDown ? service : answers;
}

std::uint64_t Health::probe_tick(std::uint64_t last_tick, std::uint32_t interval_ticks) const {
  if (silences_ == 0) {
    // A request failed: whether it lives is asked at once, then in the usual interval.
    const bool ask = failures_ != 0 && answered_tick_ <= failed_tick_ && last_tick <= failed_tick_;
    return last_tick + (ask ? 1 : interval_ticks);
  }
  if (silences_ < rules_.failures_down) return last_tick + std::min(interval_ticks, pause_ticks(0));
  return last_tick + std::max(interval_ticks, pause_ticks(silences_ - rules_.failures_down));
}

std::uint32_t Health::pause_ticks(std::uint32_t doublings) const {
  const std::uint64_t pause = std::uint64_t{rules_.pause_ticks_min} << std::min(doublings, 30U);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(pause, rules_.pause_ticks_max));
}

}  // namespace pickd::endpoints

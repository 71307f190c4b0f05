#include "daemon/maintenance/maintenance.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "daemon/base/clock.hpp"

namespace pickd::maintenance {

namespace {

// A whole walk over the reservations in about 13 s: a lease is minutes, so that is soon enough.
constexpr std::uint32_t kLeaseSlicesPerWalk = 256;
// After a long stop of the process the sweep does not make up for every tick at once.
constexpr std::uint64_t kTicksAtOnceMax = 20;

}  // namespace

Maintenance::Maintenance(const MaintenanceParts& parts)
    : parts_(parts),
      counters_(parts.counters_row),
      horizons_(parts.table, *parts.ages),
      sweep_(parts.table, *parts.ages, horizons_) {}

Maintenance::~Maintenance() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Maintenance::start() {
  last_tick_ = parts_.clock.tick();
  thread_ = std::thread([this] { run(); });
}

void Maintenance::ask(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t mine = ++asked_;
  changed_.notify_all();
  changed_.wait(lock, [this, mine] { return done_ >= mine || stop_; });
}

void Maintenance::run_now(bool whole_pass) {
  std::unique_lock lock(mutex_);
  asked_whole_pass_ |= whole_pass;
  ask(lock);
}

StoreReport Maintenance::report() {
  std::unique_lock lock(mutex_);
  asked_report_ = true;
  ask(lock);
  return report_;
}

StoreSummary Maintenance::summary() const {
  const std::lock_guard lock(mutex_);
  return summary_;
}

void Maintenance::run() {
  ::pthread_setname_np(::pthread_self(), "pickd-maintain");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::uint64_t asked = asked_;
    const bool whole_pass = std::exchange(asked_whole_pass_, false);
    const bool report = std::exchange(asked_report_, false);
    lock.unlock();
    const std::uint64_t tick = parts_.clock.tick();
    if (report) horizons_.recount();
    turn(tick, whole_pass);
    StoreReport made;
    if (report) made = make_report(tick);
    lock.lock();
    summary_ = {parts_.table.lines * abi::kWordsPerLine,
                static_cast<std::uint64_t>(horizons_.live_words())};
    if (report) report_ = std::move(made);
    done_ = asked;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::nanoseconds(abi::kTickNs),
                      [this, asked] { return stop_ || asked_ != asked; });
  }
}

StoreReport Maintenance::make_report(std::uint64_t tick) {
  StoreReport report;
  report.words = parts_.table.lines * abi::kWordsPerLine;
  report.live = static_cast<std::uint64_t>(horizons_.live_words());
  report.global_cuts = horizons_.global_cuts();
  const std::uint64_t global = parts_.header->global_horizon.load(std::memory_order_relaxed);
  if (report.global_cuts != 0 && global < tick) report.global_horizon_age_ticks = tick - global;
  report.last_pass = sweep_.totals();
  const auto ids = parts_.header->endpoint_high_water.load(std::memory_order_acquire);
  report.endpoints.resize(ids);
  for (std::uint32_t id = 1; id < ids; ++id) {
    const abi::LifeWord life{parts_.table.records[id].life.load(std::memory_order_relaxed)};
    report.endpoints[id] = {static_cast<std::uint64_t>(horizons_.live_words(id)),
                            abi::stamp_age(life.horizon(), state::stamp_of(tick)),
                            prefix::horizon_rule_name(horizons_.rule(id))};
  }
  return report;
}

void Maintenance::turn(std::uint64_t tick, bool whole_pass) {
  // The heartbeat says that the daemon lives, by real time whatever the store's clock is.
  // Partner: clients that judge whether the daemon hangs.
  parts_.header->heartbeat_ns.store(base::boot_ns(), std::memory_order_release);
  const auto high_water = static_cast<std::uint32_t>(
      parts_.header->endpoint_high_water.load(std::memory_order_acquire));
  const std::uint64_t ttl_ticks = parts_.header->ttl_ticks;
  prefix::SweepOutcome outcome = prefix::follow_leap(horizons_, sweep_, last_tick_, tick, ttl_ticks,
                                                     high_water, parts_.table.lines);
  horizons_.advance(tick, ttl_ticks, high_water);

  const std::uint64_t passed = std::clamp<std::uint64_t>(tick - last_tick_, 0, kTicksAtOnceMax);
  last_tick_ = tick;
  const std::uint64_t lines = whole_pass ? parts_.table.lines : sweep_.lines_per_tick() * passed;
  outcome += sweep_.slice(tick, lines);
  counters_.add(abi::Counter::swept_words, outcome.cleared);
  counters_.add(abi::Counter::sweep_passes, outcome.passes);

  const std::uint32_t slots = parts_.reservations->slot_count();
  const std::uint32_t slice = std::max<std::uint32_t>(1, slots / kLeaseSlicesPerWalk);
  const std::uint32_t expired = parts_.reservations->expire_slice(
      &lease_cursor_, whole_pass ? slots : slice, tick, parts_.lease_ticks);
  counters_.add(abi::Counter::reservations_expired, expired);
}

}  // namespace pickd::maintenance

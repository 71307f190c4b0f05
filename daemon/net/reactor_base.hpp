// ReactorBase: what the reactors share and no kernel interface decides: timers in an ordered map,
// the bell (an eventfd) by which other threads wake the loop, the order to stop. Knows nothing of
// how readiness is learnt.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "daemon/base/fd.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {

class ReactorBase : public Reactor {
 public:
  TimerId after(std::uint64_t delay_ns, TimerHandler handler) final;
  void cancel(TimerId timer) final;
  void run() final;
  void stop() final;
  void wake() final;
  void set_wake_handler(TimerHandler handler) final { wake_handler_ = std::move(handler); }

 protected:
  explicit ReactorBase(base::Fd bell) : bell_(std::move(bell)) {}
  static base::Result<base::Fd> make_bell();
  base::Result<void> watch_bell();

  // Waits until something is ready, but not longer than wait_ns(), and calls the handlers of what
  // is: some at a time, so that timers have their turn.
  virtual void handle_events() = 0;

  // Until the next timer is due; nothing: no timer is set.
  std::optional<std::uint64_t> wait_ns() const;
  int bell() const { return bell_.get(); }

 private:
  void run_timers();

  base::Fd bell_;
  std::map<std::pair<std::uint64_t, TimerId>, TimerHandler> timers_;  // by due time, then by age
  std::unordered_map<TimerId, std::uint64_t> due_of_;
  TimerHandler wake_handler_;
  TimerId next_timer_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace pickd::net

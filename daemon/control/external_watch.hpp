// Watches the operator's own plugins from outside the request path: counts what went wrong in their
// calls, and says in the log when one has been switched off.
//
// On the control thread.
#pragma once

#include <cstdint>
#include <map>

#include "daemon/control/engine_room.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::control {

class ExternalWatch {
 public:
  // Looks once a second. All outlive it.
  ExternalWatch(net::Reactor& reactor, EngineRoom& room, state::Counters& counters);
  ~ExternalWatch();

  // Before the schedule is replaced: a last look at its plugins.
  void leave();

 private:
  struct Seen {
    std::uint64_t failures = 0;
    std::uint64_t slow = 0;
    bool off = false;
  };
  void arm();
  void look();

  net::Reactor& reactor_;
  EngineRoom& room_;
  state::Counters& counters_;
  std::map<const pick::ExternalPlugin*, Seen> seen_;  // of the schedule in force
  net::Reactor::TimerId timer_{};
};

}  // namespace pickd::control

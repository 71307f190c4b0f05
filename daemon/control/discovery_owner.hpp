// Discovery owner: makes the sources that the configuration names, gives their sets to the endpoint
// table and says in the log and the counters what becomes of them. Control thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/allowance.hpp"
#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/discovery/set_keeper.hpp"
#include "daemon/discovery/source.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::control {

class DiscoveryOwner {
 public:
  // Removes what discoveries left in the table that the configuration no longer names. Sources
  // begin with the reactor's next turn. `counters` is the control thread's row.
  static base::Result<std::unique_ptr<DiscoveryOwner>> create(const config::Config& config,
                                                              net::Reactor& reactor,
                                                              EngineRoom& room,
                                                              state::Counters& counters);
  ~DiscoveryOwner();

 private:
  static constexpr std::uint32_t kLinesAtOnce = 20;
  static constexpr std::uint64_t kLinePauseTicks = 100;  // 5 s
  struct Pool {
    std::string name;
    std::string trouble;                    // as its source said last
    std::string said_trouble;               // as the log did
    std::set<std::string> said_lines = {};  // of it
    bool given = false;                     // a set
    std::size_t endpoints = 0;
    std::optional<std::size_t> said_endpoints;
    // One that changes all the time is worth a line now and then: what it came to is said later.
    base::Allowance lines{kLinesAtOnce, kLinePauseTicks};
    std::unique_ptr<discovery::SetKeeper> keeper;
    std::unique_ptr<discovery::Source> source;
  };

  DiscoveryOwner(net::Reactor& reactor, EngineRoom& room, state::Counters& counters)
      : reactor_(reactor), room_(room), counters_(counters) {}
  base::Result<void> add(const config::PoolConfig& pool, const config::Config& config);
  void forget_others(const config::Config& config);
  void took(Pool& pool, const discovery::SetKeeper::Taken& taken);
  void trouble(Pool& pool, const std::string& why);
  void tell(Pool& pool);
  void try_again();

  net::Reactor& reactor_;
  EngineRoom& room_;
  state::Counters& counters_;
  std::vector<std::unique_ptr<Pool>> pools_;
  net::Reactor::TimerId timer_ = 0;
};

}  // namespace pickd::control

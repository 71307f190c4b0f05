// Pulse: whether the threads of the daemon go on, looked at once a second. On the control thread
// only; waits for nobody.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/admin/facts.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::control {

class Pulse {
 public:
  Pulse(net::Reactor& reactor, EngineRoom& room);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  admin::Check maintenance() const;
  // Of each thread that must go on for the daemon to work.
  std::vector<admin::Check> threads() const;

 private:
  struct Asked {
    std::uint64_t times = 0;
    std::uint64_t at_ns = 0;
    bool good = true;
  };

  void look();
  void look_at_worker(std::uint32_t index, std::uint64_t now_ns, bool late);

  net::Reactor* reactor_;
  EngineRoom* room_;
  net::Reactor::TimerId timer_ = 0;
  std::uint64_t looked_ns_ = 0;
  std::vector<Asked> asked_;  // by worker
};

}  // namespace pickd::control

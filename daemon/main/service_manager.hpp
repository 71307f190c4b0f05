// What systemd asks of a service: that it says when it is ready, reloads, stops, that it is alive,
// and that it takes a socket it is given. Under no service manager all of it does nothing.
//
// Knows the reactor and the engine room; on the control thread only.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/control/control_server.hpp"

namespace pickd::service {

// The listening socket that the service manager holds for `path` (pickd.socket), or an invalid Fd
// when it passed none. Passed descriptors that are not such a socket are an error that says what
// was expected.
base::Result<base::Fd> passed_listener(const std::string& path);

void say_ready(const std::string& status);
void say_reloading();
void say_stopping();

// Tells the service manager's watchdog, three times in its period, that the daemon is alive; that
// is when every worker took its mail since the last time and the maintenance thread's heartbeat
// went on. A thread that hangs thus ends the daemon, which comes back with its store.
class Watchdog {
 public:
  explicit Watchdog(control::ControlServer& server);
  // False: nobody watches.
  bool start();

 private:
  void beat();
  bool alive();

  control::ControlServer* server_;
  std::uint64_t period_ns_ = 0;
  std::uint64_t last_heartbeat_ns_ = 0;
  std::uint64_t asked_ = 0;
};

}  // namespace pickd::service

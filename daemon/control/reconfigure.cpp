// A configuration that changed while the daemon runs: its scheduling is taken, the rest waits for a
// restart, and what is wrong changes nothing.
#include <sstream>
#include <string>

#include "daemon/base/log.hpp"
#include "daemon/control/control_server.hpp"

namespace pickd::control {

void ControlServer::reconfigure(base::Result<config::Config> next) {
  const auto refuse = [this](const std::string& why) {
    counters_->add(abi::Counter::config_reload_failures);
    std::istringstream lines(why);  // a mistake each
    for (std::string line; std::getline(lines, line);)
      spdlog::error("configuration not taken, the one before stays in force: {}", line);
  };
  if (!next) return refuse(next.error().text);
  auto schedule = pick::Schedule::make(next->scheduling, config_.latency.enabled);
  if (!schedule) return refuse(schedule.error().text);
  config::Config rest = *next;
  rest.scheduling = config_.scheduling;
  if (!(rest == config_)) {
    spdlog::warn(
        "configuration: changes outside of `scheduling` need a restart, and were not taken");
  }
  if (next->scheduling == config_.scheduling) return;
  external_watch_->leave();
  room_->set_schedule(std::move(*schedule));
  config_.scheduling = next->scheduling;
  counters_->add(abi::Counter::config_reloads);
  spdlog::info("configuration: profile {} from here on", room_->schedule().name());
}

void ControlServer::tell_origins(std::string path, std::map<std::string, config::Place> origins) {
  config_path_ = std::move(path);
  config_origins_ = std::move(origins);
}

}  // namespace pickd::control

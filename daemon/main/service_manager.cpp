#include "daemon/main/service_manager.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cstring>

#include "daemon/base/clock.hpp"
#include "daemon/base/log.hpp"

namespace pickd::service {

namespace {

constexpr std::uint64_t kBeatsAPeriod = 3;

}  // namespace

base::Result<base::Fd> passed_listener(const std::string& path) {
  const int count = ::sd_listen_fds(1);  // 1: children do not see the variables
  if (count < 0) return base::Error{count, std::string("LISTEN_FDS: ") + std::strerror(-count)};
  if (count == 0) return base::Fd();
  base::Fd listener(SD_LISTEN_FDS_START);
  for (int extra = 1; extra < count; ++extra) base::Fd(SD_LISTEN_FDS_START + extra);
  if (count > 1) {
    return base::Error{-EINVAL, "the service manager passed " + std::to_string(count) +
                                    " sockets; pickd listens at one, listen.socket"};
  }
  if (::sd_is_socket_unix(listener.get(), SOCK_SEQPACKET, 1, path.c_str(), 0) <= 0) {
    return base::Error{-EINVAL,
                       "the socket that the service manager passed does not listen at "
                       "listen.socket, " +
                           path + ", as ListenSequentialPacket= of pickd.socket would"};
  }
  const int flags = ::fcntl(listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listener.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return base::errno_error("the passed socket");
  return listener;
}

void say_ready(const std::string& status) { ::sd_notify(0, ("READY=1\nSTATUS=" + status).c_str()); }

void say_reloading() {
  const std::string text =
      "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(base::monotonic_ns() / 1000);
  ::sd_notify(0, text.c_str());
}

void say_stopping() { ::sd_notify(0, "STOPPING=1"); }

Watchdog::Watchdog(control::ControlServer& server) : server_(&server) {}

bool Watchdog::start() {
  std::uint64_t period_us = 0;
  if (::sd_watchdog_enabled(0, &period_us) <= 0 || period_us == 0) return false;
  period_ns_ = period_us * 1000;
  beat();
  return true;
}

void Watchdog::beat() {
  if (alive()) {
    ::sd_notify(0, "WATCHDOG=1");
  }
  server_->reactor().after(period_ns_ / kBeatsAPeriod, [this] { beat(); });
}

// Asks for the next time, and says whether what was asked last time has been answered.
bool Watchdog::alive() {
  control::EngineRoom& room = server_->room();
  const std::uint64_t heartbeat_ns =
      room.segment().header().heartbeat_ns.load(std::memory_order_acquire);
  bool all = heartbeat_ns != last_heartbeat_ns_;
  if (!all) spdlog::error("watchdog: the maintenance thread stands still");
  last_heartbeat_ns_ = heartbeat_ns;
  for (std::uint32_t index = 0; index < room.worker_count(); ++index) {
    workers::Worker& worker = room.worker(index);
    if (worker.answered(workers::Worker::Asker::kWatchdog) != asked_) {
      spdlog::error("watchdog: worker {} stands still", index);
      all = false;
      continue;  // what was asked is on its way still
    }
  }
  if (!all) return false;
  ++asked_;
  for (std::uint32_t index = 0; index < room.worker_count(); ++index) {
    room.worker(index).ask(workers::Worker::Asker::kWatchdog);
  }
  return true;
}

}  // namespace pickd::service

// The control server: accepts clients, answers their control messages, notices their end.
//
// Runs on the control thread's reactor. One file a group of messages (handle_*.cpp); which message
// needs what is one table in dispatch.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/admin/admin_server.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/log_limit.hpp"
#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/control/admin_source.hpp"
#include "daemon/control/discovery_owner.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/control/engines.hpp"
#include "daemon/control/explainer.hpp"
#include "daemon/control/external_watch.hpp"
#include "daemon/control/message.hpp"
#include "daemon/control/pulse.hpp"
#include "daemon/control/recording.hpp"
#include "daemon/control/session.hpp"
#include "daemon/endpoints/endpoint_notes.hpp"
#include "daemon/net/closer.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::control {

class ControlServer {
 public:
  // `listener`: a socket that listens at listen.socket already and outlives this server; invalid:
  // one is made, and removed at the end.
  static base::Result<std::unique_ptr<ControlServer>> create(const config::Config& config,
                                                             bool virtual_clock,
                                                             base::Fd listener = {});
  ~ControlServer();

  // Serves until stop(), which any thread or a signal handler's eventfd may cause.
  void run();
  void stop();

  // The configuration as it reads now, or why it does not: takes the scheduling, or keeps what was.
  // On the reactor's thread.
  void reconfigure(base::Result<config::Config> next);

  // Where the configuration came from, for who asks for it: the file (empty: none) and the place of
  // each setting. Nothing else depends on it.
  void tell_origins(std::string path, std::map<std::string, config::Place> origins);

  net::Reactor& reactor() { return *reactor_; }
  EngineRoom& room() { return *room_; }

 private:
  friend struct Handlers;
  struct ChannelInfo {
    std::uint64_t session;
    std::uint32_t worker;
    std::uint32_t uid;
    std::uint64_t bytes;  // of its segment
  };

  ControlServer(const config::Config& config);
  base::Result<void> choose_reactor();
  base::Result<void> watch_listener();
  base::Result<void> start_admin();
  void release_orphans(const std::vector<endpoints::Reservations::Owner>& owners);
  void accept_clients();
  void open_session(base::Fd socket);
  bool may_connect(std::uint32_t uid) const;
  bool is_admin(std::uint32_t uid) const;
  void read_session(std::uint64_t id);
  base::Result<void> watch_session(const Session& session);
  // What one user may take of this thread, on all its connections together.
  bool has_time_left(const Session& session);
  void charge_time(const Session& session, std::uint64_t from_ns);
  void rest(Session& session);
  void wake_resting();
  void dispatch(Session& session, const fb::Message& message);
  void end_session(Session& session, const char* why);
  void finish_session(std::uint64_t id);
  void take_gone_channels();
  std::uint32_t quietest_worker() const;
  // What connects or opens over a limit: the words for it; none when it is within.
  const char* over_clients(std::uint32_t uid) const;
  std::string over_channels(const Session& session, std::uint64_t bytes) const;
  // A warning of what clients can cause again and again.
  static void warn(base::LogLimit& limit, const std::string& text);
  std::shared_ptr<workers::UserRates> rates_of(std::uint32_t uid);
  std::uint64_t new_blocks_per_s(std::uint32_t uid) const;
  void renew_rates();

  void send(Session& session, std::span<const std::uint8_t> bytes, std::span<const int> fds = {});
  void send_outcome(Session& session, std::uint32_t number, int code, const std::string& text);
  void send_outcome(Session& session, std::uint32_t number, const base::Result<void>& result);

  config::Config config_;  // in force
  std::string config_path_;
  std::map<std::string, config::Place> config_origins_;
  net::Closer closer_;
  base::Fd socket_lock_;
  base::Fd state_lock_;
  base::Fd listener_;
  bool owns_socket_file_ = false;
  std::unique_ptr<net::Reactor> reactor_;
  std::string why_not_io_uring_;
  endpoints::EndpointNotes notes_;
  std::unique_ptr<EngineRoom> room_;
  std::unique_ptr<Engines> engines_;
  std::unique_ptr<state::Counters> counters_;
  std::unique_ptr<DiscoveryOwner> discovery_;
  std::unique_ptr<Explainer> explainer_;
  std::unique_ptr<ExternalWatch> external_watch_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<Pulse> pulse_;
  std::unique_ptr<AdminSource> admin_source_;
  std::unique_ptr<admin::AdminServer> admin_;  // nullptr: not configured
  std::unordered_map<std::uint64_t, Session> sessions_;
  std::unordered_map<std::uint32_t, ChannelInfo> channels_;
  std::vector<std::uint32_t> channels_of_worker_;
  std::unordered_map<std::uint32_t, std::shared_ptr<workers::UserRates>> rates_;  // by uid
  std::unordered_map<std::uint32_t, workers::RateBucket> time_of_user_;  // microseconds, by uid
  std::vector<std::uint64_t> resting_;                                   // sessions
  std::uint64_t next_session_ = 0;
  std::uint32_t next_channel_ = 0;
  base::LogLimit broken_warnings_;
  base::LogLimit channel_warnings_;
  base::LogLimit accept_warnings_;
  base::LogLimit time_warnings_;
  std::uint64_t started_ns_ = 0;

  std::mutex gone_mutex_;
  std::vector<std::pair<std::uint32_t, bool>> gone_;  // channels that left their worker; broken?
};

}  // namespace pickd::control

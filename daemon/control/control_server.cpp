#include "daemon/control/control_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/base/clock.hpp"
#include "daemon/base/log.hpp"
#include "daemon/net/make_reactor.hpp"
#include "daemon/net/unix_socket.hpp"
#include "daemon/state/instance_lock.hpp"

namespace pickd::control {

namespace {

constexpr std::uint64_t kAcceptRestMs = 200;
constexpr int kPacketsAtOnce = 16;  // of one client before the next has its turn

}  // namespace

ControlServer::ControlServer(const config::Config& config) : config_(config) {}

base::Result<std::unique_ptr<ControlServer>> ControlServer::create(const config::Config& config,
                                                                   bool virtual_clock,
                                                                   base::Fd listener) {
  std::unique_ptr<ControlServer> server(new ControlServer(config));
  // Pages come by real time, which a clock that stands knows nothing of.
  if (virtual_clock) server->config_.scrape.enabled = false;
  auto socket_lock = state::take_instance_lock(config.listen.socket, "listen.socket");
  if (!socket_lock) return socket_lock.error();
  server->socket_lock_ = std::move(*socket_lock);
  auto state_lock = state::take_instance_lock(config.state.path, "state.path");
  if (!state_lock) return state_lock.error();
  server->state_lock_ = std::move(*state_lock);

  if (auto chosen = server->choose_reactor(); !chosen) return chosen.error();

  ControlServer* self = server.get();
  auto room = EngineRoom::create(server->config_, virtual_clock,
                                 [self](std::uint32_t channel, bool broken) {
                                   {
                                     const std::lock_guard lock(self->gone_mutex_);
                                     self->gone_.emplace_back(channel, broken);
                                   }
                                   self->reactor_->wake();
                                 });
  if (!room) return room.error();
  server->room_ = std::move(*room);
  server->counters_ =
      std::make_unique<state::Counters>(server->room_->segment().counters(state::kControlRow));
  auto discovery =
      DiscoveryOwner::create(config, *server->reactor_, *server->room_, *server->counters_);
  if (!discovery) return discovery.error();
  server->discovery_ = std::move(*discovery);
  server->explainer_ = std::make_unique<Explainer>(*server->room_);
  server->recording_ = std::make_unique<Recording>(*server->room_);
  server->external_watch_ =
      std::make_unique<ExternalWatch>(*server->reactor_, *server->room_, *server->counters_);
  server->channels_of_worker_.resize(server->room_->worker_count());
  server->reactor_->set_wake_handler([self] { self->take_gone_channels(); });

  server->listener_ = std::move(listener);
  if (!server->listener_.valid()) {
    auto made = net::listen_unix(
        config.listen.socket, static_cast<std::uint32_t>(config.listen.mode), config.listen.group);
    if (!made) return made.error();
    server->listener_ = std::move(*made);
    server->owns_socket_file_ = true;
  }
  if (auto watched = server->watch_listener(); !watched) return watched.error();
  if (auto owners = server->room_->reservations().owners(); !owners.empty()) {
    server->reactor_->after(config.reservations.come_back_within_ms * 1'000'000,
                            [self, owners = std::move(owners)] { self->release_orphans(owners); });
  }
  auto engines =
      Engines::create(server->config_, *server->reactor_, *server->room_, server->notes_);
  if (!engines) return engines.error();
  server->engines_ = std::move(*engines);
  server->renew_rates();
  server->started_ns_ = base::monotonic_ns();
  server->pulse_ = std::make_unique<Pulse>(*server->reactor_, *server->room_);
  if (auto started = server->start_admin(); !started) return started.error();
  server->room_->start();
  return server;
}

base::Result<void> ControlServer::start_admin() {
  admin_source_ = std::make_unique<AdminSource>(AdminSource::Parts{
      room_.get(), &notes_, explainer_.get(), pulse_.get(), started_ns_, reactor_->name(),
      [this] { return sessions_.size(); }, [this] { return channels_.size(); }});
  auto made = admin::AdminServer::create(config_.admin, *reactor_, *counters_, *admin_source_);
  if (!made) return made.error();
  admin_ = std::move(*made);
  if (admin_ == nullptr) return {};
  for (const std::string& place : admin_->places()) spdlog::info("admin: {}", place);
  return {};
}

base::Result<void> ControlServer::choose_reactor() {
  const auto choice = net::reactor_choice(config_.listen.reactor);
  auto made = net::make_reactor(choice.value_or(net::ReactorChoice::kAuto));
  if (!made) return made.error();
  reactor_ = std::move(made->reactor);
  why_not_io_uring_ = std::move(made->why_not_io_uring);
  if (!why_not_io_uring_.empty()) {
    const bool asked = choice == net::ReactorChoice::kIoUring;
    spdlog::log(asked ? spdlog::level::warn : spdlog::level::info,
                "reactor: epoll, because io_uring cannot be used: {}", why_not_io_uring_);
  }
  return {};
}

ControlServer::~ControlServer() {
  if (owns_socket_file_) {
    // Only while the lock is held: another daemon's socket may stand there afterwards.
    ::unlink(config_.listen.socket.c_str());
  }
  admin_.reset();
  admin_source_.reset();
  pulse_.reset();
  explainer_.reset();
  external_watch_.reset();
  discovery_.reset();
  engines_.reset();
  room_.reset();  // workers call back into this object until they are joined
}

void ControlServer::run() { reactor_->run(); }
void ControlServer::stop() { reactor_->stop(); }

bool ControlServer::may_connect(std::uint32_t uid) const {
  const auto& allowed = config_.listen.allowed_uids;
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), uid) != allowed.end() ||
         is_admin(uid);
}

bool ControlServer::is_admin(std::uint32_t uid) const {
  if (!config_.listen.admin_uids) return uid == 0 || uid == ::geteuid();
  const auto& admins = *config_.listen.admin_uids;
  return std::find(admins.begin(), admins.end(), uid) != admins.end();
}

void ControlServer::accept_clients() {
  while (true) {
    auto socket = net::accept_unix(listener_.get());
    if (!socket) {
      // Out of descriptors, most likely. The listener stays readable, so looking again at once
      // would spin: it rests, and says so once a rest.
      warn(accept_warnings_, "control: " + socket.error().text + "; no new clients for " +
                                 std::to_string(kAcceptRestMs) + " ms");
      reactor_->unwatch(listener_.get());
      reactor_->after(kAcceptRestMs * 1'000'000, [this] {
        if (auto watched = watch_listener(); !watched)
          spdlog::error("control: {}", watched.error().text);
      });
      return;
    }
    if (!socket->valid()) return;
    open_session(std::move(*socket));
  }
}

base::Result<void> ControlServer::watch_listener() {
  return reactor_->watch(listener_.get(), net::kReadable,
                         [this](std::uint32_t) { accept_clients(); });
}

// What a dead client left in a state file that was gone on with: clients that live come back by
// themselves, the others' reservations would skew the load until their lease ends.
void ControlServer::release_orphans(const std::vector<endpoints::Reservations::Owner>& owners) {
  std::uint32_t released = 0;
  for (const endpoints::Reservations::Owner& owner : owners) {
    const bool back = std::any_of(sessions_.begin(), sessions_.end(), [&owner](const auto& other) {
      const Session& session = other.second;
      return !session.ended && session.greeted && session.client == owner.client &&
             session.peer.uid == owner.uid;
    });
    if (!back) released += room_->reservations().release_client(owner.client, owner.uid);
  }
  counters_->add(abi::Counter::reservations_released_dead, released);
  if (released != 0) {
    spdlog::info("released {} reservations of clients that did not come back", released);
  }
}

void ControlServer::open_session(base::Fd socket) {
  auto peer = net::peer_of(socket.get());
  if (!peer) return;
  const bool permitted = may_connect(peer->uid);
  const char* over = over_clients(peer->uid);
  if (!permitted || over != nullptr) {
    counters_->add(abi::Counter::control_refused);
    Session refused;
    refused.socket = std::move(socket);
    send_outcome(refused, 0, permitted ? -EMFILE : -EPERM,
                 permitted ? over
                           : "uid " + std::to_string(peer->uid) +
                                 " may not connect; listen.allowed_uids lists who may");
    return closer_.close(std::move(refused.socket));
  }
  const std::uint64_t id = ++next_session_;
  Session& session = sessions_[id];
  session.id = id;
  session.socket = std::move(socket);
  session.peer = *peer;
  session.admin = is_admin(peer->uid);
  session.process = net::open_pidfd(peer->pid);
  counters_->add(abi::Counter::clients_connected);
  // One that says nothing takes a place all the same.
  reactor_->after(config_.listen.hello_within_ms * 1'000'000, [this, id] {
    const auto at = sessions_.find(id);
    if (at != sessions_.end() && !at->second.greeted)
      end_session(at->second, "it never said hello");
  });
  auto watched = watch_session(session);
  if (watched.ok() && session.process.valid()) {
    // A child that the client forked keeps the socket open; the pidfd tells that the client itself
    // ended.
    watched = reactor_->watch(session.process.get(), net::kReadable, [this, id](std::uint32_t) {
      read_session(id);  // its last words first: a goodbye may wait behind the news of its end
      if (const auto at = sessions_.find(id); at != sessions_.end())
        end_session(at->second, "its process ended");
    });
  }
  if (!watched) {
    warn(accept_warnings_, "control: " + watched.error().text);
    end_session(session, "it cannot be watched");
  }
}

base::Result<void> ControlServer::watch_session(const Session& session) {
  return reactor_->watch(session.socket.get(), net::kReadable,
                         [this, id = session.id](std::uint32_t) { read_session(id); });
}

void ControlServer::read_session(std::uint64_t id) {
  for (int count = 0; count < kPacketsAtOnce; ++count) {
    const auto at = sessions_.find(id);
    if (at == sessions_.end() || at->second.ended) return;
    Session& session = at->second;
    if (!has_time_left(session)) return rest(session);
    const std::uint64_t from_ns = base::monotonic_ns();
    net::Packet packet = net::receive_packet(session.socket.get(), abi::kControlMessageBytesMax);
    for (base::Fd& stray : packet.strays) closer_.close(std::move(stray));
    if (packet.again) return;
    if (packet.end) return end_session(session, "it hung up");
    const fb::Message* message = packet.broken ? nullptr : verify_message(packet.bytes);
    if (message == nullptr) {
      counters_->add(abi::Counter::control_malformed);
      return end_session(session, "it broke the protocol");
    }
    dispatch(session, *message);
    if (const auto after = sessions_.find(id); after != sessions_.end())
      charge_time(after->second, from_ns);
  }
}

void ControlServer::end_session(Session& session, const char* why) {
  if (session.ended) return;
  session.ended = true;
  if (recording_ != nullptr && recording_->is_of(session.id)) recording_->stop();
  if (session.greeted && !session.leaving) counters_->add(abi::Counter::clients_died);
  spdlog::debug("{}: {}", session.words(), why);
  if (!session.resting) reactor_->unwatch(session.socket.get());
  if (session.process.valid()) reactor_->unwatch(session.process.get());
  // Its end at once, its close by somebody else: what it was sent and nobody read ends with it.
  ::shutdown(session.socket.get(), SHUT_RDWR);
  closer_.close(std::move(session.socket));
  session.process.reset();
  for (const std::uint32_t channel : session.channels) {
    room_->worker(channels_[channel].worker).remove(channel);
  }
  session.channels.clear();
  const std::uint64_t id = session.id;
  const bool held = std::any_of(channels_.begin(), channels_.end(),
                                [id](const auto& channel) { return channel.second.session == id; });
  if (!held) finish_session(id);
}

// Its channels have left the workers, so nothing can be reserved for it any more: what is left is
// freed.
void ControlServer::finish_session(std::uint64_t id) {
  const auto at = sessions_.find(id);
  const Session& session = at->second;
  const bool again = std::any_of(sessions_.begin(), sessions_.end(), [&session](const auto& other) {
    return other.first != session.id && !other.second.ended &&
           other.second.client == session.client && other.second.peer.uid == session.peer.uid;
  });
  if (session.greeted && !again) {  // again: the same client has connected anew and goes on
    const std::uint64_t from_ns = base::monotonic_ns();
    const std::uint32_t released =
        room_->reservations().release_client(session.client, session.peer.uid);
    counters_->add(abi::Counter::reservations_released_dead, released);
    charge_time(session, from_ns);  // it walks the table
  }
  sessions_.erase(at);
}

void ControlServer::take_gone_channels() {
  std::vector<std::pair<std::uint32_t, bool>> gone;
  {
    const std::lock_guard lock(gone_mutex_);
    gone.swap(gone_);
  }
  for (const auto& [channel, broken] : gone) {
    const auto at = channels_.find(channel);
    if (at == channels_.end()) continue;
    const std::uint64_t id = at->second.session;
    --channels_of_worker_[at->second.worker];
    channels_.erase(at);
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) continue;
    session->second.channels.erase(channel);
    if (broken) {
      warn(broken_warnings_, session->second.words() + ": it broke the ring protocol, closed");
    }
    const bool held = std::any_of(channels_.begin(), channels_.end(),
                                  [id](const auto& other) { return other.second.session == id; });
    if (session->second.ended) {
      if (!held) finish_session(id);
    } else if (broken) {
      end_session(session->second, "it broke the ring protocol");
    }
  }
}

void ControlServer::warn(base::LogLimit& limit, const std::string& text) {
  const auto left_out = limit.take(base::monotonic_ns());
  if (!left_out) return;
  if (*left_out == 0) return spdlog::warn("{}", text);
  spdlog::warn("{} ({} more like this were not logged)", text, *left_out);
}

std::uint32_t ControlServer::quietest_worker() const {
  const auto least = std::min_element(channels_of_worker_.begin(), channels_of_worker_.end());
  return static_cast<std::uint32_t>(least - channels_of_worker_.begin());
}

void ControlServer::send(Session& session, std::span<const std::uint8_t> bytes,
                         std::span<const int> fds) {
  if (session.ended || !session.socket.valid()) return;
  if (auto sent = net::send_packet(session.socket.get(), bytes, fds); !sent) {
    // It does not read its answers. Not ended here: the caller still holds the session.
    spdlog::debug("client {}: {}", session.id, sent.error().text);
    ::shutdown(session.socket.get(), SHUT_RDWR);
  }
}

void ControlServer::send_outcome(Session& session, std::uint32_t number, int code,
                                 const std::string& text) {
  MessageBuilder reply;
  const auto words = reply.builder().CreateString(text);
  send(session, reply.finish(number, fb::CreateOutcome(reply.builder(), code, words)));
}

void ControlServer::send_outcome(Session& session, std::uint32_t number,
                                 const base::Result<void>& result) {
  send_outcome(session, number, result.ok() ? 0 : result.error().code,
               result.ok() ? "" : result.error().text);
}

}  // namespace pickd::control

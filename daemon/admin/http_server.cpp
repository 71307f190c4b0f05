#include "daemon/admin/http_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "daemon/admin/listen.hpp"
#include "daemon/base/log.hpp"

namespace pickd::admin {

namespace {

constexpr int kAcceptsAtOnce = 16;
constexpr std::uint64_t kRestMs = 200;    // of a listener when there are no descriptors
constexpr std::uint64_t kDrainMs = 1000;  // for a peer to take the last words
constexpr std::size_t kDrainBytesMax = 256 * 1024;
constexpr std::size_t kReadBytes = 4096;
constexpr std::uint64_t kMs = 1'000'000;

}  // namespace

struct HttpServer::Connection {
  explicit Connection(std::size_t head_bytes_max) : reader(head_bytes_max) {}

  enum class Stage : std::uint8_t {
    kReading,
    kWriting,
    kWaiting,   // for its turn: the next request is there already
    kDraining,  // the last words are out; what still comes is thrown away
  };
  std::uint64_t id = 0;
  base::Fd socket;
  bool any_host = false;
  RequestReader reader;
  Stage stage = Stage::kReading;
  std::string out;
  std::size_t out_sent = 0;
  bool last = false;  // closes behind what is being sent
  std::uint32_t requests = 0;
  std::size_t drained = 0;
  std::uint64_t used = 0;  // order of the last request among those of all connections
  net::Reactor::TimerId timer = 0;

  bool idles() const { return stage == Stage::kReading && requests != 0 && !reader.in_request(); }
};

HttpServer::HttpServer(net::Reactor& reactor, state::Counters& counters, const ServerLimits& limits,
                       Site site)
    : reactor_(&reactor), counters_(&counters), limits_(limits), site_(std::move(site)) {}

HttpServer::~HttpServer() {
  while (!connections_.empty()) close(*connections_.begin()->second);
  for (const auto& listener : listeners_) {
    if (listener->rest != 0) reactor_->cancel(listener->rest);
    reactor_->unwatch(listener->socket.get());
  }
}

base::Result<void> HttpServer::serve(base::Fd socket, bool any_host) {
  listeners_.push_back(std::make_unique<Listener>());
  listeners_.back()->socket = std::move(socket);
  listeners_.back()->any_host = any_host;
  return watch(*listeners_.back());
}

base::Result<void> HttpServer::watch(Listener& listener) {
  return reactor_->watch(listener.socket.get(), net::kReadable,
                         [this, &listener](std::uint32_t) { accept_from(listener); });
}

void HttpServer::accept_from(Listener& listener) {
  for (int count = 0; count < kAcceptsAtOnce; ++count) {
    base::Fd socket(
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // It stays readable, so looking again at once would spin.
        reactor_->unwatch(listener.socket.get());
        listener.rest = reactor_->after(kRestMs * kMs, [this, &listener] {
          listener.rest = 0;
          if (auto watched = watch(listener); !watched)
            spdlog::error("admin: {}", watched.error().text);
        });
      }
      return;
    }
    if (!make_room()) {
      counters_->add(abi::Counter::admin_connections_refused);
      continue;
    }
    auto connection = std::make_unique<Connection>(limits_.head_bytes_max);
    const std::uint64_t id = ++next_id_;
    connection->id = id;
    connection->socket = std::move(socket);
    connection->any_host = listener.any_host;
    if (!reactor_->watch(connection->socket.get(), net::kReadable,
                         [this, id](std::uint32_t readiness) { ready(id, readiness); })) {
      counters_->add(abi::Counter::admin_connections_refused);
      continue;
    }
    deadline(*connection, limits_.request_within_ms);
    connections_[id] = std::move(connection);
  }
}

// One that idles gives its place away; one that is at work does not.
bool HttpServer::make_room() {
  if (connections_.size() < limits_.connections_max) return true;
  Connection* longest = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (connection->idles() && (longest == nullptr || connection->used < longest->used))
      longest = connection.get();
  }
  if (longest == nullptr) return false;
  close(*longest);
  return true;
}

void HttpServer::deadline(Connection& connection, std::uint64_t ms) {
  if (connection.timer != 0) reactor_->cancel(connection.timer);
  connection.timer = reactor_->after(ms * kMs, [this, id = connection.id] {
    const auto at = connections_.find(id);
    if (at == connections_.end()) return;
    at->second->timer = 0;
    const bool slow =
        at->second->stage == Connection::Stage::kWriting || at->second->reader.in_request();
    if (slow) counters_->add(abi::Counter::admin_refused);
    close(*at->second);
  });
}

void HttpServer::close(Connection& connection) {
  if (connection.timer != 0) reactor_->cancel(connection.timer);
  reactor_->unwatch(connection.socket.get());
  connections_.erase(connection.id);
}

void HttpServer::ready(std::uint64_t id, std::uint32_t readiness) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  Connection& connection = *at->second;
  switch (connection.stage) {
    case Connection::Stage::kReading: return receive(connection);
    case Connection::Stage::kWriting:
      if ((readiness & net::kHungUp) != 0) return close(connection);
      return flush(connection);
    case Connection::Stage::kWaiting: return close(connection);  // it hung up
    case Connection::Stage::kDraining: return drain(connection);
  }
}

void HttpServer::receive(Connection& connection) {
  char bytes[kReadBytes];
  const ssize_t got = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(connection);
  // From its first byte a request has its time, however the rest trickles in.
  if (connection.idles()) deadline(connection, limits_.request_within_ms);
  go_on(connection, connection.reader.feed({bytes, static_cast<std::size_t>(got)}));
}

void HttpServer::go_on(Connection& connection, RequestReader::State state) {
  switch (state) {
    case RequestReader::State::kMore: return;
    case RequestReader::State::kRefused:
      return refuse(connection, words(connection.reader.status(), connection.reader.why()));
    case RequestReader::State::kReady: break;
  }
  const Request& request = connection.reader.request();
  connection.used = ++next_id_;
  ++connection.requests;
  const Answer answer = answer_to(connection, request);
  if (answer.status == 405) return refuse(connection, answer);  // what follows may be a body
  if (answer.status >= 400 && answer.status < 500) counters_->add(abi::Counter::admin_refused);
  say(connection, answer, request.keep_alive && connection.requests < limits_.requests_max,
      request.method == "GET");
}

Answer HttpServer::answer_to(const Connection& connection, const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    Answer answer = words(405, "there are GET and HEAD; nothing can be changed here");
    answer.fields.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  if (!connection.any_host && !request.host.empty() && !is_address(request.host)) {
    return words(403,
                 "the Host of a request must be an address or localhost; a name could be "
                 "anybody's");
  }
  return site_(request);
}

void HttpServer::refuse(Connection& connection, const Answer& answer) {
  counters_->add(abi::Counter::admin_refused);
  say(connection, answer, false, true);
}

void HttpServer::say(Connection& connection, const Answer& answer, bool keep_alive,
                     bool with_body) {
  counters_->add(abi::Counter::admin_requests);
  connection.out = head_of(answer, keep_alive);
  if (with_body) connection.out += answer.body;
  connection.out_sent = 0;
  connection.last = !keep_alive;
  connection.stage = Connection::Stage::kWriting;
  deadline(connection, limits_.request_within_ms);
  flush(connection);
}

void HttpServer::flush(Connection& connection) {
  const std::size_t left = connection.out.size() - connection.out_sent;
  const ssize_t put = ::send(connection.socket.get(), connection.out.data() + connection.out_sent,
                             left, MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN && errno != EINTR) return close(connection);
  if (put > 0) connection.out_sent += static_cast<std::size_t>(put);
  if (connection.out_sent == connection.out.size()) return sent(connection);
  if (put > 0) deadline(connection, limits_.request_within_ms);
  // Not readable meanwhile: what a peer sends ahead waits in its own buffers.
  if (!reactor_->change(connection.socket.get(), net::kWritable)) close(connection);
}

void HttpServer::sent(Connection& connection) {
  connection.out = {};
  if (!reactor_->change(connection.socket.get(), net::kReadable)) return close(connection);
  if (connection.last) {
    // Closing now, with bytes of the peer unread, would take the answer from it.
    ::shutdown(connection.socket.get(), SHUT_WR);
    connection.stage = Connection::Stage::kDraining;
    return deadline(connection, kDrainMs);
  }
  const RequestReader::State next = connection.reader.next();
  if (next == RequestReader::State::kMore) {
    connection.stage = Connection::Stage::kReading;
    return deadline(connection,
                    connection.reader.in_request() ? limits_.request_within_ms : limits_.idle_ms);
  }
  // Requests that were sent ahead take turns with everybody else.
  connection.stage = Connection::Stage::kWaiting;
  if (!reactor_->change(connection.socket.get(), 0)) return close(connection);
  reactor_->cancel(connection.timer);
  connection.timer = reactor_->after(0, [this, next, id = connection.id] {
    const auto at = connections_.find(id);
    if (at == connections_.end()) return;
    at->second->timer = 0;
    go_on(*at->second, next);
  });
}

void HttpServer::drain(Connection& connection) {
  char bytes[kReadBytes];
  const ssize_t got = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  connection.drained += got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got <= 0 || connection.drained > kDrainBytesMax) close(connection);
}

}  // namespace pickd::admin

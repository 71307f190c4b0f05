#include "daemon/net/http/connection.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>

namespace pickd::net::http {

namespace {

constexpr std::size_t kPieceBytes = 16 * 1024;
// Of one connection before the next has its turn: an engine that sends without end is one of many.
constexpr int kPiecesAtOnce = 8;
// A peer that vanished without a word is noticed on a watch that may be silent for long.
constexpr int kProbeAfterS = 60;
constexpr int kProbeEveryS = 15;
constexpr int kProbes = 4;

std::string words(int code) { return std::strerror(code); }

// Of making a socket and of connecting it: what this machine lacks, whoever is at the other end.
bool is_local(int code) {
  return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM ||
         code == EADDRNOTAVAIL;
}

void set(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

bool read_address(const std::string& host, std::uint16_t port, Address& address) {
  address = {};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.bytes);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof *v4;
    return true;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof *v6;
    return true;
  }
  return false;
}

void Connection::open(std::vector<Address> addresses, std::shared_ptr<TlsContext> tls,
                      const std::string& host) {
  close();
  addresses_ = std::move(addresses);
  next_address_ = 0;
  tls_context_ = std::move(tls);
  host_ = host;
  last_error_ = "no address";
  last_failure_ = Failure::kConnect;
  if (!try_next()) end_later(last_failure_, last_error_);
}

bool Connection::try_next() {
  while (next_address_ < addresses_.size()) {
    const Address& address = addresses_[next_address_++];
    socket_ = base::Fd(
        ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (!socket_.valid()) {
      failed_to_connect(errno);
      continue;
    }
    set(socket_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, kProbeAfterS);
    set(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, kProbeEveryS);
    set(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) !=
            0 &&
        errno != EINPROGRESS) {
      failed_to_connect(errno);
      socket_.reset();
      continue;
    }
    // Writable: connected, or refused.
    auto watched = reactor_->watch(socket_.get(), kWritable,
                                   [this](std::uint32_t readiness) { ready(readiness); });
    if (!watched) {
      failed_to_connect(-watched.error().code);
      socket_.reset();
      continue;
    }
    stage_ = Stage::kConnecting;
    return true;
  }
  stage_ = Stage::kClosed;
  return false;
}

void Connection::failed_to_connect(int code) {
  last_error_ = words(code);
  last_failure_ = is_local(code) ? Failure::kNoResources : Failure::kConnect;
}

void Connection::close() {
  if (later_ != 0) reactor_->cancel(later_);
  later_ = 0;
  if (socket_.valid()) reactor_->unwatch(socket_.get());
  socket_.reset();
  tls_.reset();
  pending_.clear();
  wants_write_ = false;
  stage_ = Stage::kClosed;
}

void Connection::end_later(Failure failure, std::string text) {
  if (later_ != 0) return;
  later_ = reactor_->after(0, [this, failure, text = std::move(text)] {
    later_ = 0;
    end(failure, text);
  });
}

void Connection::end(Failure failure, const std::string& text) {
  close();
  owner_->connection_ended(failure, text);
}

void Connection::ready(std::uint32_t readiness) {
  if (stage_ == Stage::kConnecting) return connected();
  if ((readiness & kWritable) != 0 && !flush()) return;
  if ((readiness & (kReadable | kHungUp)) != 0) receive();
}

void Connection::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  sockaddr_storage peer{};
  size = sizeof peer;
  if (error == 0 && ::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    if (errno == ENOTCONN) return;  // a turn too early
    error = errno;
  }
  if (error == 0) {
    if (auto changed = reactor_->change(socket_.get(), kReadable); !changed) error = EIO;
  }
  if (error != 0) {
    failed_to_connect(error);
    reactor_->unwatch(socket_.get());
    socket_.reset();
    if (!try_next()) end(last_failure_, last_error_);
    return;
  }
  if (tls_context_ == nullptr) {
    stage_ = Stage::kOpen;
    static_cast<void>(owner_->connection_open());
    return;
  }
  stage_ = Stage::kHandshaking;
  tls_ = std::make_unique<TlsStream>(tls_context_, host_);
  static_cast<void>(go_on_with_handshake());
}

bool Connection::go_on_with_handshake() {
  const TlsStream::State state = tls_->handshake();
  tls_->take_wire(pending_);
  if (state == TlsStream::State::kFailed) {
    const std::string error = tls_->error();
    // The alert tells the engine's log why; who does not take it does not need it.
    static_cast<void>(
        ::send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    end(Failure::kTls, error);
    return false;
  }
  if (!flush()) return false;
  if (state != TlsStream::State::kOpen) return true;
  stage_ = Stage::kOpen;
  return owner_->connection_open();
}

void Connection::send(std::string_view bytes) {
  if (stage_ != Stage::kOpen) return;
  if (tls_ != nullptr) {
    if (!tls_->write(bytes)) return end_later(Failure::kTls, tls_->error());
    tls_->take_wire(pending_);
    bytes = {};
  }
  std::string_view out = pending_.empty() ? bytes : std::string_view(pending_);
  if (!pending_.empty() && !bytes.empty()) {
    pending_.append(bytes);
    out = pending_;
  }
  const ssize_t sent = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const std::size_t taken = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  const int error = sent < 0 ? errno : 0;
  if (pending_.empty()) {
    pending_.assign(out.substr(taken));
  } else {
    pending_.erase(0, taken);
  }
  if (error != 0 && error != EAGAIN && error != EINTR)
    return end_later(Failure::kReset, words(error));
  if (!pending_.empty() && !wants_write_) {
    wants_write_ = true;
    if (auto changed = reactor_->change(socket_.get(), kReadable | kWritable); !changed)
      end_later(Failure::kReset, changed.error().text);
  }
}

bool Connection::flush() {
  while (!pending_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      pending_.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) {
      end(Failure::kReset, words(errno));
      return false;
    }
    break;
  }
  const bool wants_write = !pending_.empty();
  if (wants_write == wants_write_) return true;
  wants_write_ = wants_write;
  auto changed = reactor_->change(socket_.get(),
                                  wants_write ? kReadable | kWritable : std::uint32_t{kReadable});
  if (changed) return true;
  end(Failure::kReset, changed.error().text);
  return false;
}

void Connection::receive() {
  char piece[kPieceBytes];
  for (int count = 0; count < kPiecesAtOnce; ++count) {
    const ssize_t got = ::recv(socket_.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (got > 0) {
      if (!take({piece, static_cast<std::size_t>(got)})) return;
      // Less than was asked for: nothing more is there now. Saves a call per answer.
      if (static_cast<std::size_t>(got) < sizeof piece) return;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    return end(got == 0 ? Failure::kNone : Failure::kReset,
               got == 0 ? "the peer closed the connection" : words(errno));
  }
}

bool Connection::take(std::string_view bytes) {
  if (tls_ == nullptr) return owner_->connection_received(bytes);
  tls_->put_wire(bytes);
  if (stage_ == Stage::kHandshaking && !go_on_with_handshake()) return false;
  return stage_ != Stage::kOpen || take_plain();
}

bool Connection::take_plain() {
  char plain[kPieceBytes];
  while (const std::size_t got = tls_->read(plain, sizeof plain)) {
    if (!owner_->connection_received({plain, got})) return false;
  }
  if (tls_->state() == TlsStream::State::kFailed) {
    end(Failure::kReset, tls_->error());
    return false;
  }
  if (tls_->state() == TlsStream::State::kEnded) {
    end(Failure::kNone, "the peer closed the connection");
    return false;
  }
  tls_->take_wire(pending_);  // a key update is answered
  return pending_.empty() || flush();
}

}  // namespace pickd::net::http

// Connection: see connection.hpp.
#include "libclient/connection.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace pickd::client {

int Connection::open(const char* path, const Deadline& deadline, LastError& error, When when) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = ::strlen(path);
  if (length == 0) return error.set(-EINVAL, "the socket path is empty");
  if (length >= sizeof address.sun_path) {
    return error.set(-E2BIG, "the socket path is longer than %zu bytes",
                     sizeof address.sun_path - 1);
  }
  ::memcpy(address.sun_path, path, length);

  const int no_wait = when == When::kNow ? SOCK_NONBLOCK : 0;
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | no_wait, 0));
  if (!socket.valid()) {
    const int code = -errno;
    return error.set(code, "socket: %s", ::strerror(-code));
  }
  // connect() on a Unix socket waits for a place in the backlog for as long as SO_SNDTIMEO says.
  if (!deadline.is_never()) {
    const timespec left = deadline.left();
    timeval timeout{left.tv_sec, left.tv_nsec / 1000};
    if (timeout.tv_sec == 0 && timeout.tv_usec == 0)
      timeout.tv_usec = 1;  // 0 would mean "for ever"
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  }
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno == EINTR) continue;
    if (errno == EACCES || errno == EPERM) {
      return error.set(-EACCES, "no permission to connect to %s: its owner and group say who may",
                       path);
    }
    if (errno == EAGAIN)
      return error.set(-ETIMEDOUT, "the daemon at %s does not accept in time", path);
    return error.set(-ENOTCONN, "cannot connect to %s: %s; is pickd running?", path,
                     ::strerror(errno));
  }
  if (no_wait != 0) ::fcntl(socket.get(), F_SETFL, O_RDWR);
  socket_ = static_cast<Fd&&>(socket);
  return 0;
}

bool Connection::hung_up() {
  if (dead()) return true;
  pollfd waiting{socket_.get(), 0, 0};
  if (::poll(&waiting, 1, 0) > 0 && (waiting.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
    mark_dead();
  return dead();
}

int Connection::lost(LastError& error) {
  mark_dead();
  return error.set(-ENOTCONN, "the daemon closed the connection");
}

int Connection::request(ControlExchange& exchange, const Deadline& deadline, LastError& error,
                        When when) {
  std::uint32_t number;
  {
    Lock lock(mutex_);
    while (busy_) {
      if (!turn_.wait(lock, deadline))
        return error.set(-ETIMEDOUT, "another control request is in the way");
    }
    busy_ = true;
    number = ++last_number_;
  }
  int code = settle(exchange, when == When::kNow ? Deadline::after_us(0) : deadline, error);
  if (code == 0) code = send(exchange, number, deadline, error);
  // A daemon that refuses a client says why and hangs up at once: its words may still wait here.
  if (code == 0 || code == -ENOTCONN) code = receive(exchange, number, deadline, error);
  {
    const Lock lock(mutex_);
    send_closes(lock);  // of who found the turn taken
    busy_ = false;
    turn_.wake_one();
  }
  return code;
}

// Takes the answers that nobody waits for any more, and sends what found no room before.
int Connection::settle(ControlExchange& exchange, const Deadline& deadline, LastError& error) {
  for (;;) {
    {
      const Lock lock(mutex_);
      send_closes(lock);
    }
    if (unanswered() == 0) return 0;
    if (const int code = receive_packet(exchange, deadline, error); code != 0) return code;
    drop_reply(*exchange.reply_);
  }
}

int Connection::send(ControlExchange& exchange, std::uint32_t number, const Deadline& deadline,
                     LastError& error) {
  finish(exchange, number);
  for (;;) {
    if (send_now(exchange)) return 0;
    if (errno != EAGAIN) return lost(error);
    if (!wait_until(POLLOUT, deadline))
      return error.set(-ETIMEDOUT, "the daemon does not read its control socket");
  }
}

void Connection::finish(ControlExchange& exchange, std::uint32_t number) {
  flatbuffers::FlatBufferBuilder& builder = exchange.builder_;
  fb::FinishMessageBuffer(builder,
                          fb::CreateMessage(builder, number, exchange.body_type_, exchange.body_));
}

// False: errno says why not.
bool Connection::send_now(const ControlExchange& exchange) {
  const flatbuffers::FlatBufferBuilder& builder = exchange.builder_;
  ssize_t sent;
  do {
    sent = ::send(socket_.get(), builder.GetBufferPointer(), builder.GetSize(),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) unanswered_.fetch_add(1, std::memory_order_relaxed);
  return sent >= 0;
}

// False when the deadline passed.
bool Connection::wait_until(short event, const Deadline& deadline) {
  for (;;) {
    pollfd waiting{socket_.get(), event, 0};
    const timespec left = deadline.is_never() ? timespec{} : deadline.left();
    const int ready = ::ppoll(&waiting, 1, deadline.is_never() ? nullptr : &left, nullptr);
    if (ready >= 0) return ready != 0;
    if (errno != EINTR) return true;  // what follows will tell
  }
}

int Connection::receive(ControlExchange& exchange, std::uint32_t number, const Deadline& deadline,
                        LastError& error) {
  for (;;) {
    if (const int code = receive_packet(exchange, deadline, error); code != 0) return code;
    const fb::Message* reply = exchange.reply_;
    const auto* outcome = reply->body_as_Outcome();
    // Number 0 answers no request: it refuses the connection as such.
    if (reply->number() != number && (reply->number() != 0 || outcome == nullptr)) {
      drop_reply(*reply);
      continue;
    }
    if (exchange.lost_descriptors_) {
      drop_reply(*reply);
      return error.set(-EMFILE,
                       "this process has no descriptor left for what the daemon handed over; "
                       "RLIMIT_NOFILE says how many it may have");
    }
    if (reply->number() == 0) mark_dead();
    if (outcome == nullptr || outcome->code() == 0) return 0;
    if (outcome->code() > 0 || outcome->code() < -4095) {
      return error.set(-EPROTO, "the daemon answered with error value %d", outcome->code());
    }
    const char* text =
        outcome->text() == nullptr ? "refused by the daemon" : outcome->text()->c_str();
    return error.set(outcome->code(), "%s", text);
  }
}

// 0: exchange.reply_ is a message, whole but for descriptors perhaps.
int Connection::receive_packet(ControlExchange& exchange, const Deadline& deadline,
                               LastError& error) {
  exchange.reply_ = nullptr;
  for (Fd& descriptor : exchange.descriptors_) descriptor.reset();
  exchange.descriptor_count_ = 0;
  if (!wait_until(POLLIN, deadline))
    return error.set(-ETIMEDOUT, "the daemon did not answer a control request in time");

  iovec part{exchange.reply_bytes_, sizeof exchange.reply_bytes_};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * abi::kControlDescriptorsMax)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size;
  bool reset = false;  // told once when the daemon closed with our request unread; its words follow
  for (;;) {
    size = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (size >= 0 || (errno != EINTR && (errno != ECONNRESET || reset))) break;
    reset = reset || errno == ECONNRESET;
  }
  if (size <= 0) return lost(error);
  // One more than was sent is no answer; it must not make an answer of the future look taken.
  if (unanswered() != 0) unanswered_.fetch_sub(1, std::memory_order_relaxed);

  for (cmsghdr* part_head = CMSG_FIRSTHDR(&message); part_head != nullptr;
       part_head = CMSG_NXTHDR(&message, part_head)) {
    if (part_head->cmsg_level != SOL_SOCKET || part_head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part_head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor;
      ::memcpy(&descriptor, CMSG_DATA(part_head) + i * sizeof descriptor, sizeof descriptor);
      Fd owned(descriptor);
      if (exchange.descriptor_count_ < abi::kControlDescriptorsMax) {
        exchange.descriptors_[exchange.descriptor_count_++] = static_cast<Fd&&>(owned);
      }
    }
  }
  // Cut though there was room: this process could not take them.
  const bool cut = (message.msg_flags & MSG_CTRUNC) != 0;
  exchange.lost_descriptors_ = cut && exchange.descriptor_count_ < abi::kControlDescriptorsMax;
  if ((message.msg_flags & MSG_TRUNC) != 0 || (cut && !exchange.lost_descriptors_)) {
    return error.set(
        -EPROTO, "the daemon sent a control message over the limit of %zu bytes or %zu descriptors",
        abi::kControlMessageBytesMax, abi::kControlDescriptorsMax);
  }
  flatbuffers::Verifier verifier(exchange.reply_bytes_, static_cast<std::size_t>(size),
                                 abi::kControlDepthMax, abi::kControlTablesMax);
  if (!fb::VerifyMessageBuffer(verifier)) {
    return error.set(-EPROTO, "the daemon sent a control message of %zd bytes that is malformed",
                     size);
  }
  exchange.reply_ = fb::GetMessage(exchange.reply_bytes_);
  return 0;
}

// An answer whose asker has given up, or cannot use it.
void Connection::drop_reply(const fb::Message& reply) {
  if (const auto* opened = reply.body_as_ChannelOpened()) close_channel(opened->channel());
}

void Connection::say_goodbye() {
  if (!socket_.valid() || dead()) return;
  if (const Owned<ControlExchange> leaving = make_exchange(); leaving != nullptr) {
    leaving->set_body(fb::CreateGoodbye(leaving->builder()));
    finish(*leaving, 0);
    static_cast<void>(send_now(*leaving));
  }  // else the daemon takes the hang-up for a death: counted, no harm
}

void Connection::shut() {
  if (socket_.valid()) ::shutdown(socket_.get(), SHUT_RDWR);
}

void Connection::close_channel(std::uint32_t channel) {
  if (dead()) return;
  Lock lock(mutex_);
  // Those before it first. There are never more than a client may have.
  if (to_close_count_ < abi::kChannelsPerClientMax) to_close_[to_close_count_++] = channel;
  if (busy_ || unanswered() < kUnansweredClosesMax) return send_closes(lock);
  const Owned<ControlExchange> exchange = make_exchange();
  if (exchange == nullptr) return;
  busy_ = true;
  lock.unlock();
  take_words_on_closes(*exchange);
  lock.lock();
  send_closes(lock);
  busy_ = false;
  turn_.wake_one();
}

// Until there is room for more. Not again and again for a daemon that stands still.
void Connection::take_words_on_closes(ControlExchange& exchange) {
  LastError unheard;
  const Deadline patience = Deadline::after_ms(closes_in_vain_ ? 0 : kClosePatienceMs);
  while (unanswered() != 0) {
    const bool room = unanswered() < kUnansweredClosesMax / 2;
    if (!wait_until(POLLIN, room ? Deadline::after_us(0) : patience)) {
      closes_in_vain_ = !room;
      return;
    }
    if (receive_packet(exchange, patience, unheard) != 0) return;
    drop_reply(*exchange.reply_);
  }
  closes_in_vain_ = false;
}

void Connection::send_closes(const Lock&) {
  std::uint32_t sent = 0;
  while (sent < to_close_count_ && unanswered() < kUnansweredClosesMax) {
    const Owned<ControlExchange> closing = make_exchange();
    if (closing == nullptr) break;
    closing->set_body(fb::CreateCloseChannel(closing->builder(), to_close_[sent]));
    finish(*closing, ++last_number_);
    if (!send_now(*closing)) break;
    ++sent;
  }
  if (sent == 0) return;
  to_close_count_ -= sent;
  ::memmove(to_close_, to_close_ + sent, to_close_count_ * sizeof to_close_[0]);
}

}  // namespace pickd::client

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

int Connection::request(ControlExchange& exchange, const Deadline& deadline, LastError& error) {
  {
    Lock lock(mutex_);
    while (busy_) {
      if (!turn_.wait(lock, deadline))
        return error.set(-ETIMEDOUT, "another control request is in the way");
    }
    busy_ = true;
  }
  const std::uint32_t number = ++last_number_;
  int code = send(exchange, number, error);
  // A daemon that refuses a client says why and hangs up at once: its words may still wait here.
  if (code == 0 || code == -ENOTCONN) code = receive(exchange, number, deadline, error);
  {
    const Lock lock(mutex_);
    busy_ = false;
    turn_.wake_one();
  }
  return code;
}

int Connection::send(ControlExchange& exchange, std::uint32_t number, LastError& error) {
  flatbuffers::FlatBufferBuilder& builder = exchange.builder_;
  fb::FinishMessageBuffer(builder,
                          fb::CreateMessage(builder, number, exchange.body_type_, exchange.body_));
  for (;;) {
    if (::send(socket_.get(), builder.GetBufferPointer(), builder.GetSize(), MSG_NOSIGNAL) >= 0)
      return 0;
    if (errno == EINTR) continue;
    if (errno == EAGAIN)
      return error.set(-ETIMEDOUT, "the daemon does not read its control socket");
    return lost(error);
  }
}

int Connection::receive(ControlExchange& exchange, std::uint32_t number, const Deadline& deadline,
                        LastError& error) {
  for (;;) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    const timespec left = deadline.is_never() ? timespec{} : deadline.left();
    const int ready = ::ppoll(&waiting, 1, deadline.is_never() ? nullptr : &left, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      return error.set(-ETIMEDOUT, "the daemon did not answer a control request in time");
    if (const int code = receive_packet(exchange, error); code != 0) return code;

    const fb::Message* reply = exchange.reply_;
    const auto* outcome = reply->body_as_Outcome();
    // Number 0 answers no request: it refuses the connection as such.
    if (reply->number() != number && (reply->number() != 0 || outcome == nullptr)) {
      // An answer to a request whose asker stopped waiting.
      if (const auto* opened = reply->body_as_ChannelOpened())
        close_abandoned_channel(opened->channel());
      continue;
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

int Connection::receive_packet(ControlExchange& exchange, LastError& error) {
  exchange.reply_ = nullptr;
  for (Fd& descriptor : exchange.descriptors_) descriptor.reset();
  exchange.descriptor_count_ = 0;

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
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
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

void Connection::say_goodbye() {
  if (!socket_.valid() || dead()) return;
  const Owned<ControlExchange> leaving = make_exchange();
  if (leaving == nullptr) return;  // the daemon takes the hang-up for a death: counted, no harm
  flatbuffers::FlatBufferBuilder& builder = leaving->builder();
  leaving->set_body(fb::CreateGoodbye(builder));
  fb::FinishMessageBuffer(builder,
                          fb::CreateMessage(builder, 0, leaving->body_type_, leaving->body_));
  static_cast<void>(::send(socket_.get(), builder.GetBufferPointer(), builder.GetSize(),
                           MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Connection::close_abandoned_channel(std::uint32_t channel) {
  const Owned<ControlExchange> closing = make_exchange();
  if (closing == nullptr) return;
  closing->set_body(fb::CreateCloseChannel(closing->builder(), channel));
  LastError unheard;  // nobody waits for this answer either: it is skipped by its number
  static_cast<void>(send(*closing, ++last_number_, unheard));
}

}  // namespace pickd::client

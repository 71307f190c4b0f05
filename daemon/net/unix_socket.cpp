#include "daemon/net/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "daemon/net/socket_file.hpp"

namespace pickd::net {

namespace {

// Whoever connects cannot pass descriptors here: sending them fails, at the sender. Linux 6.16;
// before, they are received and closed apart.
void refuse_descriptors(int socket) {
#ifndef SO_PASSRIGHTS
  constexpr int SO_PASSRIGHTS = 83;
#endif
  const int no = 0;
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no));
}

void take_descriptors(msghdr& message, std::vector<base::Fd>& into) {
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t at = 0; at < count; ++at) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + at * sizeof fd, sizeof fd);
      into.emplace_back(fd);
    }
  }
}

}  // namespace

base::Result<base::Fd> listen_unix(const std::string& path, std::uint32_t mode,
                                   const std::string& group) {
  base::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::errno_error("socket");
  refuse_descriptors(socket.get());  // before anybody can connect
  if (auto there = listen_at(socket.get(), {"listen.socket", path, mode, group}); !there) {
    return there.error();
  }
  return socket;
}

base::Result<base::Fd> accept_unix(int listener) {
  base::Fd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid() && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
    return base::errno_error("accept");
  }
  // Again, for who connected to a listener that systemd made.
  if (socket.valid()) refuse_descriptors(socket.get());
  return socket;
}

base::Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return base::errno_error("SO_PEERCRED");
  }
  return Peer{static_cast<std::uint32_t>(credentials.pid), credentials.uid, credentials.gid};
}

base::Fd open_pidfd(std::uint32_t pid) {
  if (pid == 0) return base::Fd();  // a peer of another pid namespace
  return base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
}

Packet receive_packet(int socket, std::size_t bytes_max) {
  Packet packet;
  packet.bytes.resize(bytes_max + 1);
  iovec piece{packet.bytes.data(), packet.bytes.size()};
  // Room for as many descriptors as a packet can carry: the kernel closes what finds none, here and
  // now.
  constexpr std::size_t kScmMaxFd = 253;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kScmMaxFd)];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  // Told once, of a peer that closed with an answer unread: its last words follow.
  if (got < 0 && errno == ECONNRESET)
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) {
    packet.again = errno == EAGAIN || errno == EINTR;
    packet.end = !packet.again;
    return packet;
  }
  packet.end = got == 0;
  const bool descriptors = message.msg_controllen != 0;
  if (descriptors) take_descriptors(message, packet.strays);
  packet.broken = descriptors || (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 ||
                  static_cast<std::size_t>(got) > bytes_max;
  packet.bytes.resize(static_cast<std::size_t>(got));
  return packet;
}

base::Result<void> send_packet(int socket, std::span<const std::uint8_t> bytes,
                               std::span<const int> fds) {
  if (fds.size() > abi::kControlDescriptorsMax) {
    return base::Error{-E2BIG, "send: more descriptors than a packet holds"};
  }
  iovec piece{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * abi::kControlDescriptorsMax)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(head), fds.data(), sizeof(int) * fds.size());
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return base::errno_error("send");
  return {};
}

}  // namespace pickd::net

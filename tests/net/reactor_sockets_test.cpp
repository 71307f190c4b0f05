// The conformance suite of the reactor, third part: what servers and clients do with it over real
// sockets: accept, connect, transfer in pieces, resets, no descriptors left.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "tests/net/reactor_suite.hpp"

namespace pickd::net {
namespace {

base::Fd tcp_socket() {
  return base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

class ReactorSockets : public ReactorSuite {
 protected:
  struct Listener {
    explicit Listener(int backlog, std::uint16_t wanted_port = 0) : socket(tcp_socket()) {
      const int on = 1;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      sockaddr_in address = loopback(wanted_port);
      bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(socket.get(), backlog) == 0;
      socklen_t length = sizeof address;
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
      port = ntohs(address.sin_port);
    }
    base::Fd accept() const {
      return base::Fd(::accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    }
    base::Fd socket;
    std::uint16_t port = 0;
    bool bound = false;
  };

  static base::Fd start_connecting(std::uint16_t port) {
    base::Fd socket = tcp_socket();
    const sockaddr_in address = loopback(port);
    const int done =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    EXPECT_TRUE(done == 0 || errno == EINPROGRESS) << std::strerror(errno);
    return socket;
  }

  static int socket_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
  }

  // Two ends of a TCP connection.
  struct Connection {
    base::Fd client;
    base::Fd server;
  };
  static Connection connected() {
    const Listener listener(8);
    base::Fd client = start_connecting(listener.port);
    // The kernel completes a connection over loopback before connect() returns.
    base::Fd server = listener.accept();
    EXPECT_TRUE(server.valid());
    return {std::move(client), std::move(server)};
  }
};

TEST_P(ReactorSockets, AcceptsManyConnectionsAndConnectsThem) {
  constexpr std::size_t kConnections = 60;
  const Listener listener(128);
  ASSERT_TRUE(listener.bound);
  std::vector<base::Fd> accepted;
  std::vector<base::Fd> clients;
  std::size_t connected = 0;
  const auto done = [&] {
    if (accepted.size() == kConnections && connected == kConnections) reactor_->stop();
  };
  watch(listener.socket.get(), kReadable, [&](std::uint32_t) {
    base::Fd socket = listener.accept();  // one a call: level-triggered, the others come again
    ASSERT_TRUE(socket.valid());
    accepted.push_back(std::move(socket));
    done();
  });
  for (std::size_t at = 0; at < kConnections; ++at) {
    clients.push_back(start_connecting(listener.port));
    const int fd = clients.back().get();
    watch(fd, kWritable, [&, fd](std::uint32_t readiness) {
      EXPECT_EQ(readiness, kWritable);
      EXPECT_EQ(socket_error(fd), 0);
      reactor_->unwatch(fd);
      ++connected;
      done();
    });
  }
  reactor_->run();
  EXPECT_EQ(accepted.size(), kConnections);
}

TEST_P(ReactorSockets, TellsThatAConnectionWasRefused) {
  std::uint16_t port = 0;
  {
    const Listener closed(1);
    port = closed.port;
  }
  const base::Fd socket = start_connecting(port);
  int error = 0;
  watch(socket.get(), kWritable, [&](std::uint32_t readiness) {
    EXPECT_NE(readiness & kHungUp, 0U);
    error = socket_error(socket.get());
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_EQ(error, ECONNREFUSED);
}

// Nobody accepts and the backlog is full: the connection hangs, as with a host that is gone.
TEST_P(ReactorSockets, GivesUpAConnectionThatNobodyAnswersWhenItsTimeIsOver) {
  const Listener listener(0);
  std::vector<base::Fd> filling;
  filling.reserve(8);
  for (int count = 0; count < 8; ++count) filling.push_back(start_connecting(listener.port));
  base::Fd socket = start_connecting(listener.port);
  bool timed_out = false;
  watch(socket.get(), kWritable, [&](std::uint32_t) { FAIL() << "nobody can have answered"; });
  reactor_->after(30'000'000, [&] {
    timed_out = true;
    reactor_->unwatch(socket.get());
    socket.reset();
    run_for_turns(10);
  });
  reactor_->run();
  EXPECT_TRUE(timed_out);
}

// A slow reader, a writer that writes what fits, a reader that reads less than there is.
TEST_P(ReactorSockets, MovesMegabytesInPartialReadsAndWrites) {
  constexpr std::size_t kBytes = 4 << 20;
  constexpr std::size_t kReadAtOnce = 10'007;
  Connection both = connected();
  std::vector<unsigned char> sent(kBytes);
  for (std::size_t at = 0; at < kBytes; ++at) sent[at] = static_cast<unsigned char>(at * 31 >> 7);
  std::size_t written = 0;
  std::size_t partial_writes = 0;
  std::vector<unsigned char> got;
  watch(both.client.get(), kWritable, [&, fd = both.client.get()](std::uint32_t) {
    const ssize_t count = ::send(fd, sent.data() + written, kBytes - written, MSG_NOSIGNAL);
    ASSERT_GT(count, 0) << "it was said to be writable";
    written += static_cast<std::size_t>(count);
    if (written < kBytes) {
      ++partial_writes;
    } else {
      reactor_->unwatch(fd);
      ::shutdown(fd, SHUT_WR);
    }
  });
  watch(both.server.get(), kReadable, [&, fd = both.server.get()](std::uint32_t readiness) {
    EXPECT_NE(readiness & kReadable, 0U) << "the end of the stream is readable too";
    unsigned char bytes[kReadAtOnce];
    const ssize_t count = ::recv(fd, bytes, sizeof bytes, 0);
    ASSERT_GE(count, 0) << std::strerror(errno);
    if (count == 0) return reactor_->stop();
    got.insert(got.end(), bytes, bytes + count);
  });
  reactor_->run();
  EXPECT_GT(partial_writes, 0U) << "the test needs a full socket buffer";
  EXPECT_TRUE(got == sent) << got.size() << " bytes of " << sent.size();
}

TEST_P(ReactorSockets, TellsOfAResetByThePeer) {
  Connection both = connected();
  const linger now{1, 0};
  ASSERT_EQ(::setsockopt(both.server.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  std::uint32_t seen = 0;
  int error = 0;
  watch(both.client.get(), 0, [&, fd = both.client.get()](std::uint32_t readiness) {
    seen = readiness;
    error = socket_error(fd);
    reactor_->stop();
  });
  reactor_->after(0, [&] {
    both.server.reset();  // with that linger: a reset
  });
  reactor_->run();
  EXPECT_NE(seen & kHungUp, 0U);
  EXPECT_EQ(error, ECONNRESET);
}

TEST_P(ReactorSockets, TellsOfAHalfCloseByThePeer) {
  Connection both = connected();
  std::uint32_t seen = 0;
  watch(both.client.get(), kReadable, [&](std::uint32_t readiness) {
    seen = readiness;
    reactor_->stop();
  });
  ::shutdown(both.server.get(), SHUT_WR);
  reactor_->run();
  EXPECT_EQ(seen, kReadable | kHungUp);
}

// The peer sees the end only when nothing holds the socket open any more.
TEST_P(ReactorSockets, HoldsNoSocketOpenThatWasUnwatchedAndClosed) {
  Connection both = connected();
  watch(both.client.get(), kReadable, [](std::uint32_t) { FAIL(); });
  bool looked = false;
  reactor_->after(0, [&] {  // by now it is waited for
    reactor_->unwatch(both.client.get());
    both.client.reset();
    char byte;
    EXPECT_EQ(::recv(both.server.get(), &byte, 1, 0), 0) << "the other end is still open";
    looked = true;
    reactor_->stop();
  });
  reactor_->run();
  EXPECT_TRUE(looked);
}

TEST_P(ReactorSockets, HoldsNoSocketOpenThatWasChangedUnwatchedAndClosed) {
  Connection both = connected();
  watch(both.client.get(), kReadable, [](std::uint32_t) { FAIL(); });
  reactor_->after(0, [&] {
    EXPECT_TRUE(reactor_->change(both.client.get(), kReadable | kWritable).ok());
    reactor_->unwatch(both.client.get());
    both.client.reset();
    char byte;
    EXPECT_EQ(::recv(both.server.get(), &byte, 1, 0), 0) << "the other end is still open";
    reactor_->stop();
  });
  reactor_->run();
}

TEST_P(ReactorSockets, HoldsNoSocketOpenAfterItsOwnEnd) {
  Connection both = connected();
  watch(both.client.get(), kReadable, [](std::uint32_t) { FAIL(); });
  run_a_while();
  reactor_.reset();
  both.client.reset();
  char byte;
  EXPECT_EQ(::recv(both.server.get(), &byte, 1, 0), 0) << "the other end is still open";
}

TEST_P(ReactorSockets, FreesTheAddressOfAListenerAtOnce) {
  auto listener = std::make_unique<Listener>(8);
  ASSERT_TRUE(listener->bound);
  watch(listener->socket.get(), kReadable, [](std::uint32_t) {});
  reactor_->after(0, [&] {
    const std::uint16_t port = listener->port;
    reactor_->unwatch(listener->socket.get());
    listener.reset();
    const Listener again(8, port);
    EXPECT_TRUE(again.bound) << "something still listens there";
    reactor_->stop();
  });
  reactor_->run();
}

// As the control server does: without a descriptor for the next connection it rests, then goes on.
TEST_P(ReactorSockets, GoesOnWhenDescriptorsRunOutAndComeBack) {
  const Listener listener(64);
  constexpr int kClients = 12;
  std::vector<base::Fd> clients;
  clients.reserve(kClients);
  for (int count = 0; count < kClients; ++count) clients.push_back(start_connecting(listener.port));
  rlimit whole{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &whole), 0);
  const base::Fd next(::dup(0));  // the numbers below are all taken
  const rlimit tight{static_cast<rlim_t>(next.get()) + 5, whole.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);

  std::vector<base::Fd> accepted;
  int served = 0;
  int rests = 0;
  int refusals = 0;
  std::function<void()> listen_again;
  const auto serve = [&](std::uint32_t) {
    while (true) {
      base::Fd socket = listener.accept();
      if (socket.valid()) {
        ++served;
        accepted.push_back(std::move(socket));
        continue;
      }
      if (served == kClients) return reactor_->stop();
      if (errno == EAGAIN) return;
      ASSERT_EQ(errno, EMFILE);
      ++refusals;
      reactor_->unwatch(listener.socket.get());
      reactor_->after(1'000'000, listen_again);
      return;
    }
  };
  listen_again = [&] {
    ++rests;
    accepted.clear();  // others end, and their descriptors are free again
    watch(listener.socket.get(), kReadable, serve);
  };
  watch(listener.socket.get(), kReadable, serve);
  reactor_->run();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &whole), 0);
  EXPECT_EQ(served, kClients) << "none is lost";
  EXPECT_GE(rests, 2);
  EXPECT_EQ(refusals, rests) << "one look a rest: a listener that stays readable must not spin";
}

PICKD_EACH_REACTOR(ReactorSockets);

}  // namespace
}  // namespace pickd::net

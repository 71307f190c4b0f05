// Closer with files whose close really takes long.
#include "daemon/net/closer.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

namespace pickd::net {
namespace {

// Two ends of a TCP connection; the last close of the first waits a minute for the second to read.
struct Lingering {
  Lingering() {
    const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), name, sizeof address), 0);
    EXPECT_EQ(::getsockname(listener.get(), name, &size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    lingers = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(lingers.get(), name, sizeof address), 0);
    peer = base::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger minute{1, 60};
    EXPECT_EQ(::setsockopt(lingers.get(), SOL_SOCKET, SO_LINGER, &minute, sizeof minute), 0);
    const std::vector<char> bytes(1 << 16);
    while (::send(lingers.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  base::Fd lingers;
  base::Fd peer;
};

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end = base::Fd(ends[0]);
    write_end = base::Fd(ends[1]);
  }
  // Waits until the write end is closed.
  bool ended() const {
    char byte;
    return ::read(read_end.get(), &byte, 1) == 0;
  }
  base::Fd read_end;
  base::Fd write_end;
};

TEST(Closer, ClosesWhatItIsGiven) {
  Closer closer;
  for (int turn = 0; turn < 100; ++turn) {
    Pipe pipe;
    closer.close(std::move(pipe.write_end));
    EXPECT_TRUE(pipe.ended());
  }
}

TEST(Closer, GoesOnBesideOneThatTakesLong) {
  Lingering first;
  Lingering second;
  {
    Closer closer;
    closer.close(std::move(first.lingers));
    closer.close(std::move(second.lingers));
    Pipe pipe;
    closer.close(std::move(pipe.write_end));
    EXPECT_TRUE(pipe.ended());
  }
  // Nor does its own end wait. The two go when their peers do.
}

}  // namespace
}  // namespace pickd::net

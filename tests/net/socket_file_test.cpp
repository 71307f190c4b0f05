// A socket's file: who sees it can connect, at every moment of a start.
#include "daemon/net/socket_file.hpp"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "daemon/base/fd.hpp"

namespace pickd::net {
namespace {

base::Fd a_socket() {
  return base::Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// 0, or the errno of a connect.
int connect_to(const std::string& path) {
  const base::Fd socket = a_socket();
  const sockaddr_un address = address_of(path);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(socket.get(), name, sizeof address) == 0 ? 0 : errno;
}

// A socket that is bound and does not listen, as an instant or a crash leaves it.
void leave_a_deaf_socket(const std::string& path) {
  const base::Fd socket = a_socket();
  const sockaddr_un address = address_of(path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

class SocketFileTest : public ::testing::Test {
 protected:
  SocketFileTest() {
    char pattern[] = "/tmp/pickd-socket-file-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~SocketFileTest() override { std::filesystem::remove_all(directory_); }

  SocketFile file(const std::string& name = "socket") const {
    return {"listen.socket", directory_ + "/" + name, 0600, ""};
  }
  std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::string directory_;
};

TEST_F(SocketFileTest, ComesIntoPlaceInOneStep) {
  const base::Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(
      ::inotify_add_watch(watch.get(), directory_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ATTRIB), 0);
  const base::Fd socket = a_socket();
  const auto made = listen_at(socket.get(), file());
  ASSERT_TRUE(made) << made.error().text;

  // Under its own name nothing is made and nothing is changed: it arrives as it is to be.
  std::vector<std::uint32_t> seen;
  alignas(inotify_event) char buffer[4096];
  const ssize_t got = ::read(watch.get(), buffer, sizeof buffer);
  for (ssize_t at = 0; at < got;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    if (std::string(event->name) == "socket") seen.push_back(event->mask);
    at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
  }
  EXPECT_EQ(seen, std::vector<std::uint32_t>{IN_MOVED_TO});
  EXPECT_EQ(connect_to(file().path), 0);
  EXPECT_EQ(listing(), std::vector<std::string>{"socket"});
}

TEST_F(SocketFileTest, IsNeverRefusedToAClientThatWaitsForIt) {
  std::atomic<bool> ended{false};
  std::atomic<int> refused{0};  // with which errno
  std::atomic<std::uint64_t> connected{0};
  std::thread client([&] {
    while (!ended.load()) {
      const int error = connect_to(file().path);
      if (error == 0) connected.fetch_add(1);
      // ENOENT: it waits on; EAGAIN: it is one of many that nobody has accepted yet.
      if (error != 0 && error != ENOENT && error != EAGAIN) refused.store(error);
    }
  });
  // Kept open: who found the file before it was removed is not refused for that either.
  std::vector<base::Fd> listeners;
  for (int start = 0; start < 300 && refused.load() == 0; ++start) {
    const std::uint64_t before = connected.load();
    listeners.push_back(a_socket());
    const auto made = listen_at(listeners.back().get(), file());
    if (!made) ADD_FAILURE() << made.error().text;
    // Until a client has come in, so that each start was watched.
    while (made && refused.load() == 0 && connected.load() == before) std::this_thread::yield();
    ::unlink(file().path.c_str());
  }
  ended.store(true);
  client.join();
  EXPECT_EQ(refused.load(), 0) << std::strerror(refused.load());
}

TEST_F(SocketFileTest, TakesThePlaceOfASocketThatADeadDaemonLeft) {
  leave_a_deaf_socket(file().path);
  ASSERT_EQ(connect_to(file().path), ECONNREFUSED);
  const base::Fd socket = a_socket();
  ASSERT_TRUE(listen_at(socket.get(), file()));
  EXPECT_EQ(connect_to(file().path), 0);
}

TEST_F(SocketFileTest, RemovesWhatAStartThatWasCutShortLeft) {
  leave_a_deaf_socket(file().path + ".new");
  const base::Fd socket = a_socket();
  ASSERT_TRUE(listen_at(socket.get(), file()));
  EXPECT_EQ(connect_to(file().path), 0);
  EXPECT_EQ(listing(), std::vector<std::string>{"socket"});
}

TEST_F(SocketFileTest, LeavesWhatIsNoSocketAlone) {
  for (const char* name : {"socket", "socket.new"}) {
    std::ofstream(directory_ + "/" + name) << "precious";
    const base::Fd socket = a_socket();
    const auto refused = listen_at(socket.get(), file());
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, -EEXIST);
    EXPECT_NE(refused.error().text.find(std::string(name) + ":"), std::string::npos)
        << refused.error().text;
    EXPECT_EQ(listing(), std::vector<std::string>{name});
    std::filesystem::remove(directory_ + "/" + name);
  }
}

TEST_F(SocketFileTest, LeavesNothingWhenItCannotBeMade) {
  SocketFile wrong = file();
  wrong.group = "no-such-group-here";
  const base::Fd socket = a_socket();
  const auto refused = listen_at(socket.get(), wrong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, -ENOENT);
  EXPECT_TRUE(listing().empty());
}

TEST_F(SocketFileTest, MayHaveEveryPathThatAnAddressCanHold) {
  const std::size_t rest = 107 - directory_.size() - 1;
  for (std::size_t length = rest - 6; length <= rest; ++length) {
    const SocketFile longest = file(std::string(length, 's'));
    const base::Fd socket = a_socket();
    const auto made = listen_at(socket.get(), longest);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ(connect_to(longest.path), 0);
    EXPECT_EQ(listing(), std::vector<std::string>{std::string(length, 's')});
    std::filesystem::remove(longest.path);
  }
  const base::Fd socket = a_socket();
  const auto refused = listen_at(socket.get(), file(std::string(rest + 1, 's')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, -ENAMETOOLONG);
}

TEST_F(SocketFileTest, MayHaveADirectoryThatUsesThePathUp) {
  std::string deep = directory_;
  deep += "/" + std::string(107 - deep.size() - 3, 'd');
  std::filesystem::create_directory(deep);
  const SocketFile shortest{"listen.socket", deep + "/s", 0600, ""};
  ASSERT_EQ(shortest.path.size(), 107U);
  const base::Fd socket = a_socket();
  const auto made = listen_at(socket.get(), shortest);
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ(connect_to(shortest.path), 0);
}

}  // namespace
}  // namespace pickd::net

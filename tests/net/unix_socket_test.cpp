// Unix sockets: who may connect, packets with their borders, descriptors, credentials.
#include "daemon/net/unix_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace pickd::net {
namespace {

base::Fd connect_to(const std::string& path) {
  base::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return base::Fd();
  }
  return socket;
}

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const Packet& packet) {
  return {reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size()};
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

class UnixSocket : public ::testing::Test {
 protected:
  UnixSocket() {
    char pattern[] = "/tmp/pickd-net-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~UnixSocket() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name = "socket") const { return directory_ + "/" + name; }

  void connect() {
    auto listener = listen_unix(path(), 0600, "");
    ASSERT_TRUE(listener.ok()) << listener.error().text;
    client_ = connect_to(path());
    ASSERT_TRUE(client_.valid());
    auto accepted = accept_unix(listener->get());
    ASSERT_TRUE(accepted.ok() && accepted->valid());
    server_ = std::move(*accepted);
  }

  // Where descriptors may be passed, as they may to a listener of an older kernel.
  void pair() {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    client_ = base::Fd(ends[0]);
    server_ = base::Fd(ends[1]);
  }

  std::string directory_;
  base::Fd client_;
  base::Fd server_;
};

TEST_F(UnixSocket, ListensWithThePermissionsItWasTold) {
  for (const std::uint32_t mode : {0600U, 0660U, 0666U}) {
    const auto listener = listen_unix(path(), mode, "");
    ASSERT_TRUE(listener.ok()) << listener.error().text;
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_TRUE(S_ISSOCK(file.st_mode));
    EXPECT_EQ(file.st_mode & 07777, mode);
  }
}

TEST_F(UnixSocket, LeavesTheMaskOfTheProcessAsItWas) {
  const mode_t mask = ::umask(022);
  const auto listener = listen_unix(path(), 0600, "");
  EXPECT_EQ(::umask(mask), 022U);
}

TEST_F(UnixSocket, ReplacesASocketThatADeadDaemonLeft) {
  { const auto left = listen_unix(path(), 0600, ""); }
  ASSERT_FALSE(connect_to(path()).valid()) << "nobody listens there";
  const auto listener = listen_unix(path(), 0600, "");
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(connect_to(path()).valid());
}

TEST_F(UnixSocket, LeavesAFileThatIsNoSocketAlone) {
  std::ofstream(path()) << "precious";
  const auto refused = listen_unix(path(), 0600, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -EEXIST);
  EXPECT_NE(refused.error().text.find("no socket"), std::string::npos);
  std::string text;
  std::getline(std::ifstream(path()), text);
  EXPECT_EQ(text, "precious");
}

TEST_F(UnixSocket, SaysHowLongAPathMayBe) {
  const std::string fits = directory_ + "/" + std::string(107 - directory_.size() - 1, 's');
  EXPECT_TRUE(listen_unix(fits, 0600, "").ok());
  const auto refused = listen_unix(fits + "s", 0600, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -ENAMETOOLONG);
  EXPECT_NE(refused.error().text.find("107 bytes"), std::string::npos) << refused.error().text;
}

TEST_F(UnixSocket, NamesAGroupThatThereIsNot) {
  const auto refused = listen_unix(path(), 0660, "no-such-group-here");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -ENOENT);
  EXPECT_NE(refused.error().text.find("no-such-group-here"), std::string::npos);
}

TEST_F(UnixSocket, SaysWhichDirectoryIsMissing) {
  const auto refused = listen_unix(path("no/such/socket"), 0600, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find(path("no/such/socket")), std::string::npos);
}

TEST_F(UnixSocket, HasNobodyToAcceptWithoutWaiting) {
  const auto listener = listen_unix(path(), 0600, "");
  ASSERT_TRUE(listener.ok());
  const auto accepted = accept_unix(listener.value().get());
  ASSERT_TRUE(accepted.ok());
  EXPECT_FALSE(accepted.value().valid());
}

TEST_F(UnixSocket, KeepsTheBordersOfPackets) {
  connect();
  for (const char* text : {"one", "two and more", "3"}) {
    ASSERT_TRUE(send_packet(client_.get(), bytes_of(text), {}).ok());
  }
  EXPECT_EQ(text_of(receive_packet(server_.get(), 100)), "one");
  EXPECT_EQ(text_of(receive_packet(server_.get(), 100)), "two and more");
  EXPECT_EQ(text_of(receive_packet(server_.get(), 100)), "3");
  const Packet none = receive_packet(server_.get(), 100);
  EXPECT_TRUE(none.again);
  EXPECT_FALSE(none.end);
  EXPECT_FALSE(none.broken);
}

TEST_F(UnixSocket, TakesAPacketOfTheLimitAndCallsALongerOneBroken) {
  connect();
  ASSERT_TRUE(send_packet(client_.get(), bytes_of(std::string(64, 'a')), {}).ok());
  ASSERT_TRUE(send_packet(client_.get(), bytes_of(std::string(65, 'b')), {}).ok());
  ASSERT_TRUE(send_packet(client_.get(), bytes_of(std::string(5000, 'c')), {}).ok());
  const Packet fits = receive_packet(server_.get(), 64);
  EXPECT_FALSE(fits.broken);
  EXPECT_EQ(text_of(fits), std::string(64, 'a'));
  EXPECT_TRUE(receive_packet(server_.get(), 64).broken);
  EXPECT_TRUE(receive_packet(server_.get(), 64).broken);
}

TEST_F(UnixSocket, TellsThatThePeerIsGone) {
  connect();
  client_.reset();
  EXPECT_TRUE(receive_packet(server_.get(), 64).end);
  EXPECT_FALSE(send_packet(server_.get(), bytes_of("x"), {}).ok()) << "and no SIGPIPE";
}

TEST_F(UnixSocket, PassesDescriptorsToAClient) {
  connect();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const base::Fd out(ends[0]);
  const base::Fd in(ends[1]);
  const int fds[] = {in.get()};
  ASSERT_TRUE(send_packet(server_.get(), bytes_of("take it"), fds).ok());
  char text[16] = {};
  iovec piece{text, sizeof text};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ASSERT_EQ(::recvmsg(client_.get(), &message, 0), 7);
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  ASSERT_NE(head, nullptr);
  ASSERT_EQ(head->cmsg_len, CMSG_LEN(sizeof(int)));
  int got = -1;
  std::memcpy(&got, CMSG_DATA(head), sizeof got);
  const base::Fd passed(got);
  ASSERT_EQ(::write(passed.get(), "!", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(out.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '!');
  EXPECT_GE(::fcntl(in.get(), F_GETFD), 0) << "the sender keeps its own";
}

TEST_F(UnixSocket, RefusesToSendMoreDescriptorsThanAPacketHolds) {
  connect();
  const int fds[] = {0, 1, 2, 0, 1};
  static_assert(std::size(fds) > abi::kControlDescriptorsMax);
  EXPECT_FALSE(send_packet(server_.get(), bytes_of("x"), fds).ok());
  EXPECT_TRUE(receive_packet(client_.get(), 64).again) << "nothing was sent";
}

TEST_F(UnixSocket, CannotBeSentDescriptorsByWhoConnects) {
  connect();
  const int fds[] = {client_.get()};
  const auto sent = send_packet(client_.get(), bytes_of("hello"), fds);
  if (sent.ok()) GTEST_SKIP() << "SO_PASSRIGHTS came with Linux 6.16";
  EXPECT_EQ(sent.error().code, -EPERM);
  ASSERT_TRUE(send_packet(server_.get(), bytes_of("hello"), fds).ok()) << "the other way it may";
}

TEST_F(UnixSocket, ClosesDescriptorsThatAPeerSendsAndCallsThePacketBroken) {
  pair();
  const std::size_t before = open_descriptors();
  for (int turn = 0; turn < 20; ++turn) {
    const int fds[] = {client_.get(), client_.get(), client_.get()};
    ASSERT_TRUE(send_packet(client_.get(), bytes_of("hello"), fds).ok());
    const Packet packet = receive_packet(server_.get(), 64);
    EXPECT_TRUE(packet.broken);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// More than the kernel lets one message hold of what the receiver has room for.
TEST_F(UnixSocket, KeepsNoneOfManyDescriptors) {
  pair();
  const std::size_t before = open_descriptors();
  std::vector<int> fds(253, client_.get());
  std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
  char byte = 'x';
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(head), fds.data(), sizeof(int) * fds.size());
  ASSERT_EQ(::sendmsg(client_.get(), &message, 0), 1);
  {
    const Packet packet = receive_packet(server_.get(), 64);
    EXPECT_TRUE(packet.broken);
    EXPECT_EQ(packet.strays.size(), fds.size()) << "none is left to the kernel to close";
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(UnixSocket, SaysTryAgainWhenThePeerDoesNotRead) {
  connect();
  const auto packet = bytes_of(std::string(4096, 'x'));
  for (int turn = 0; turn < 100'000; ++turn) {
    const auto sent = send_packet(server_.get(), packet, {});
    if (sent.ok()) continue;
    EXPECT_EQ(sent.error().code, -EAGAIN);
    return;
  }
  FAIL() << "a peer that never reads held everything";
}

TEST_F(UnixSocket, KnowsWhoIsThere) {
  const auto listener = listen_unix(path(), 0600, "");
  ASSERT_TRUE(listener.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const base::Fd socket = connect_to(path());
    char byte;
    ::_exit(::read(socket.get(), &byte, 1) == 0 ? 0 : 1);
  }
  pollfd wait{listener.value().get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  auto accepted = accept_unix(listener.value().get());
  ASSERT_TRUE(accepted.ok() && accepted->valid());
  const auto peer = peer_of(accepted->get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer.value().pid, static_cast<std::uint32_t>(child));
  EXPECT_EQ(peer.value().uid, ::geteuid());
  EXPECT_EQ(peer.value().gid, ::getegid());

  const base::Fd pidfd = open_pidfd(peer.value().pid);
  if (pidfd.valid()) {
    pollfd alive{pidfd.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&alive, 1, 0), 0) << "it lives";
    accepted->reset();  // now the child ends
    EXPECT_EQ(::poll(&alive, 1, 60'000), 1);
  }
  accepted->reset();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Pidfd, IsNoneForNoProcess) {
  EXPECT_FALSE(open_pidfd(0).valid());
  EXPECT_FALSE(open_pidfd(0x7FFFFFFF).valid());
}

TEST(PeerOf, FailsForWhatIsNoSocket) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const base::Fd out(ends[0]);
  const base::Fd in(ends[1]);
  EXPECT_FALSE(peer_of(out.get()).ok());
}

}  // namespace
}  // namespace pickd::net

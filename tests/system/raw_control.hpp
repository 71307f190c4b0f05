// RawControl: the control socket without the library, to say what the library never says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "abi/limits.hpp"
#include "abi/segment.hpp"
#include "daemon/base/fd.hpp"
#include "pickd_generated.h"
#include "tests/system/support.hpp"

namespace pickd::systests {

// An answer, kept alive with its bytes.
class Reply {
 public:
  explicit Reply(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  const fb::Message& message() const { return *fb::GetMessage(bytes_.data()); }
  template <typename Table>
  const Table* as() const {
    return message().body_as<Table>();
  }
  // Of an Outcome; 1 when it is none.
  int code() const { return as<fb::Outcome>() == nullptr ? 1 : as<fb::Outcome>()->code(); }
  std::string words() const {
    return as<fb::Outcome>() == nullptr ? "" : as<fb::Outcome>()->text()->str();
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

class RawControl {
 public:
  explicit RawControl(const Daemon& daemon)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, daemon.socket().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  // False when the daemon has hung up already.
  bool send(const void* bytes, std::size_t size, const std::vector<int>& descriptors = {}) {
    iovec piece{const_cast<void*>(bytes), size};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * descriptors.size()));
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
      std::memcpy(CMSG_DATA(head), descriptors.data(), sizeof(int) * descriptors.size());
    }
    return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }

  // `build(builder)` makes the body.
  template <typename Build>
  bool say(std::uint32_t number, const Build& build, const std::vector<int>& descriptors = {}) {
    flatbuffers::FlatBufferBuilder builder;
    finish(builder, number, build(builder));
    return send(builder.GetBufferPointer(), builder.GetSize(), descriptors);
  }
  template <typename Build>
  std::optional<Reply> ask(const Build& build) {
    if (!say(++number_, build)) return std::nullopt;
    return receive();
  }

  // Nothing when the daemon hung up. Descriptors that come along are kept until the next call.
  std::optional<Reply> receive() {
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(kGenerous).count())) != 1) {
      ADD_FAILURE() << "neither an answer nor a hang-up";
      return std::nullopt;
    }
    std::vector<std::uint8_t> bytes(2 * abi::kControlMessageBytesMax);
    iovec piece{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    descriptors_.clear();
    if (got <= 0) return std::nullopt;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t at = 0; at < count; ++at) {
        int descriptor;
        std::memcpy(&descriptor, CMSG_DATA(head) + at * sizeof descriptor, sizeof descriptor);
        descriptors_.emplace_back(descriptor);
      }
    }
    bytes.resize(static_cast<std::size_t>(got));
    flatbuffers::Verifier verifier(bytes.data(), bytes.size());
    EXPECT_TRUE(fb::VerifyMessageBuffer(verifier));
    return Reply(std::move(bytes));
  }

  const std::vector<base::Fd>& descriptors() const { return descriptors_; }

  void close() { socket_.reset(); }
  bool hung_up() { return !receive().has_value(); }

  std::optional<Reply> hello(std::uint16_t layout_major = abi::kLayoutMajor) {
    return ask([layout_major](flatbuffers::FlatBufferBuilder& builder) {
      const auto name = builder.CreateString("raw");
      return fb::CreateHello(builder, layout_major, abi::kLayoutMinor, 4711, name, 2048, 0);
    });
  }

 private:
  template <typename Table>
  static void finish(flatbuffers::FlatBufferBuilder& builder, std::uint32_t number,
                     flatbuffers::Offset<Table> body) {
    fb::FinishMessageBuffer(
        builder,
        fb::CreateMessage(builder, number, fb::BodyTraits<Table>::enum_value, body.Union()));
  }

  base::Fd socket_;
  std::vector<base::Fd> descriptors_;
  std::uint32_t number_ = 0;
};

}  // namespace pickd::systests

// A client that sends arbitrary control messages and stray descriptors to the real control server:
// garbage, messages with bytes flipped, and well-made ones with nonsense in them, in any order.
//
// Every packet is answered or ends the connection, the answer is well-made, and another client is
// served afterwards. The server runs on a thread of this process, over its real socket.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/log.hpp"
#include "daemon/control/control_server.hpp"

namespace pickd {
namespace {

#define REQUIRE(condition)                                                               \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

// A server that is silent for longer hangs. A virtual clock that leaps is answered after a whole
// sweep, which on a busy machine under sanitizers takes more than 10 s.
constexpr int kPatienceMs = 60'000;

class Server {
 public:
  Server() : directory_("/dev/shm/pickd-control-fuzzer." + std::to_string(::getpid())) {
    // The log's registry must be there before this object is, so that it outlives it at exit: the
    // server still logs then.
    spdlog::set_level(spdlog::level::warn);
    config::Config config;
    config.listen.socket = directory_ + ".sock";
    config.listen.channels_per_client_max = 3;
    config.listen.channels_max = 8;
    config.listen.admin_uids = std::vector<std::uint32_t>{::geteuid()};
    config.state.path = directory_ + ".state";
    config.state.size_mib = 8;
    config.state.endpoints_max = 16;
    config.reservations.max = 64;
    auto made = control::ControlServer::create(config, true);
    REQUIRE(made.ok());
    server_ = std::move(*made);
    socket_ = config.listen.socket;
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Server() {
    server_->stop();
    thread_.join();
    server_.reset();
    for (const char* name : {".sock", ".sock.lock", ".state", ".state.lock"}) {
      ::unlink((directory_ + name).c_str());
    }
  }
  const std::string& socket() const { return socket_; }

 private:
  std::string directory_;
  std::string socket_;
  std::unique_ptr<control::ControlServer> server_;
  std::thread thread_;
};

class Connection {
 public:
  explicit Connection(const Server& server)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, server.socket().c_str(), server.socket().size() + 1);
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

  // Sends one packet and waits for what comes of it. False: the server hung up.
  bool exchange(const void* bytes, std::size_t size, int descriptors,
                std::vector<std::uint8_t>* answer) {
    iovec piece{const_cast<void*>(bytes), size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (descriptors != 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<std::size_t>(descriptors));
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<std::size_t>(descriptors));
      for (int at = 0; at < descriptors; ++at) {
        const int fd = socket_.get();
        std::memcpy(CMSG_DATA(head) + static_cast<std::size_t>(at) * sizeof fd, &fd, sizeof fd);
      }
    }
    if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) return false;
    return receive(answer);
  }

 private:
  bool receive(std::vector<std::uint8_t>* answer) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    int ready = 0;
    do {  // libFuzzer's own alarm interrupts
      ready = ::poll(&waiting, 1, kPatienceMs);
    } while (ready < 0 && errno == EINTR);
    REQUIRE(ready == 1);
    static std::vector<std::uint8_t> buffer(2 * abi::kControlMessageBytesMax);
    iovec piece{buffer.data(), buffer.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return false;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      for (std::size_t at = 0; at < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++at) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(head) + at * sizeof fd, sizeof fd);
        ::close(fd);
      }
    }
    answer->assign(buffer.begin(), buffer.begin() + got);
    flatbuffers::Verifier verifier(answer->data(), answer->size());
    REQUIRE(answer->size() <= abi::kControlMessageBytesMax);
    REQUIRE(fb::VerifyMessageBuffer(verifier));
    return true;
  }

  base::Fd socket_;
};

// Makes messages whose every field comes from the input.
class Maker {
 public:
  explicit Maker(FuzzedDataProvider& input) : input_(input) {}

  std::vector<std::uint8_t> make() {
    switch (input_.ConsumeIntegralInRange<int>(0, 13)) {
      case 0: return raw();
      case 1: return finish(fb::CreateOpenChannel(builder_, number(), number()));
      case 2: return finish(fb::CreateCloseChannel(builder_, number() % 16));
      case 3:
      case 4: {
        const auto endpoint = this->endpoint();
        const auto op = static_cast<fb::EndpointOp>(input_.ConsumeIntegralInRange<int>(0, 7));
        return finish(fb::CreateChangeEndpoint(builder_, op, endpoint));
      }
      case 5: {
        std::vector<flatbuffers::Offset<fb::Endpoint>> list;
        for (int count = input_.ConsumeIntegralInRange<int>(0, 4); count > 0; --count) {
          list.push_back(endpoint());
        }
        return finish(fb::CreateReplaceEndpoints(builder_, builder_.CreateVector(list)));
      }
      case 6: return finish(fb::CreateAskStatus(builder_));
      case 7: return finish(fb::CreateAskEndpoints(builder_, number()));
      case 8: return finish(fb::CreateAskStore(builder_, number()));
      case 9: {
        const auto tick = input_.ConsumeIntegral<std::uint64_t>();
        return finish(fb::CreateSetClock(builder_, tick, input_.ConsumeBool()));
      }
      case 10: {
        const auto record = input_.ConsumeBytes<std::uint8_t>(number() % 512);
        const auto bytes = record.empty() ? 0 : builder_.CreateVector(record);
        return finish(fb::CreateAskExplain(builder_, number() % 4, number(), bytes, number() % 8));
      }
      case 12: {
        const auto op = static_cast<fb::RecordingOp>(input_.ConsumeIntegralInRange<int>(0, 4));
        return finish(fb::CreateAskRecording(builder_, op));
      }
      case 11: return finish(fb::CreateAskConfig(builder_, number() % 4096));
      default: return input_.ConsumeBool() ? hello() : finish(fb::CreateGoodbye(builder_));
    }
  }

  std::vector<std::uint8_t> hello() {
    const auto name = builder_.CreateString(input_.ConsumeRandomLengthString(200));
    const auto major =
        input_.ConsumeBool() ? abi::kLayoutMajor : input_.ConsumeIntegral<std::uint16_t>();
    const auto minor = input_.ConsumeIntegral<std::uint16_t>();
    const std::uint64_t client = input_.ConsumeIntegralInRange<std::uint64_t>(0, 3);
    const std::uint32_t keys = number();
    return finish(fb::CreateHello(builder_, major, minor, client, name, keys, number()));
  }

 private:
  std::vector<std::uint8_t> raw() {
    return input_.ConsumeBytes<std::uint8_t>(input_.ConsumeIntegralInRange<std::size_t>(0, 1000));
  }
  std::uint32_t number() {
    return input_.ConsumeBool() ? input_.ConsumeIntegralInRange<std::uint32_t>(0, 20)
                                : input_.ConsumeIntegral<std::uint32_t>();
  }
  flatbuffers::Offset<flatbuffers::String> text() {
    if (input_.ConsumeBool()) {
      return builder_.CreateString("e" + std::to_string(input_.ConsumeIntegralInRange<int>(0, 9)));
    }
    return builder_.CreateString(input_.ConsumeRandomLengthString(300));
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> texts() {
    std::vector<flatbuffers::Offset<flatbuffers::String>> list;
    for (int count = input_.ConsumeIntegralInRange<int>(0, 70); count > 0; --count) {
      list.push_back(text());
      if (input_.remaining_bytes() == 0) break;
    }
    return builder_.CreateVector(list);
  }
  flatbuffers::Offset<fb::Endpoint> endpoint() {
    const auto name = text();
    const auto address = text();
    const auto pool = input_.ConsumeBool() ? text() : 0;
    const auto models = input_.ConsumeBool() ? texts() : 0;
    std::vector<flatbuffers::Offset<fb::Label>> labels;
    for (int count = input_.ConsumeIntegralInRange<int>(0, 3); count > 0; --count) {
      const auto key = input_.ConsumeBool() ? text() : 0;
      const auto value = input_.ConsumeBool() ? text() : 0;
      labels.push_back(fb::CreateLabel(builder_, key, value));
    }
    const auto label_list = builder_.CreateVector(labels);
    flatbuffers::Offset<fb::Adapters> adapters;
    if (input_.ConsumeBool()) {
      const auto active = texts();
      const auto waiting = input_.ConsumeBool() ? texts() : 0;
      adapters = fb::CreateAdapters(builder_, number(), active, waiting);
    }
    fb::EndpointBuilder made(builder_);
    if (input_.ConsumeIntegralInRange<int>(0, 9) != 0) made.add_name(name);
    if (input_.ConsumeIntegralInRange<int>(0, 9) != 0) made.add_address(address);
    if (!pool.IsNull()) made.add_pool(pool);
    made.add_role(input_.ConsumeIntegralInRange<std::uint8_t>(0, 5));
    if (!models.IsNull()) made.add_models(models);
    made.add_labels(label_list);
    made.add_capacity_blocks(input_.ConsumeIntegral<std::uint64_t>());
    if (!adapters.IsNull()) made.add_adapters(adapters);
    return made.Finish();
  }
  template <typename Table>
  std::vector<std::uint8_t> finish(flatbuffers::Offset<Table> body) {
    fb::FinishMessageBuffer(
        builder_,
        fb::CreateMessage(builder_, number(), fb::BodyTraits<Table>::enum_value, body.Union()));
    std::vector<std::uint8_t> bytes(builder_.GetBufferPointer(),
                                    builder_.GetBufferPointer() + builder_.GetSize());
    for (int flips = input_.ConsumeIntegralInRange<int>(0, 3); flips > 0; --flips) {
      const auto at = input_.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1);
      bytes[at] ^= input_.ConsumeIntegral<std::uint8_t>();
    }
    builder_.Clear();
    return bytes;
  }

  FuzzedDataProvider& input_;
  flatbuffers::FlatBufferBuilder builder_;
};

// A good client gets a good answer.
void ask_honestly(const Server& server) {
  Connection connection(server);
  std::vector<std::uint8_t> answer;
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString("honest");
  const auto hello =
      fb::CreateHello(builder, abi::kLayoutMajor, abi::kLayoutMinor, 99, name, 64, 0);
  fb::FinishMessageBuffer(builder, fb::CreateMessage(builder, 7, fb::Body::Hello, hello.Union()));
  REQUIRE(connection.exchange(builder.GetBufferPointer(), builder.GetSize(), 0, &answer));
  const fb::Message* reply = fb::GetMessage(answer.data());
  REQUIRE(reply->number() == 7 && reply->body_as_Welcome() != nullptr);
}

void run(const std::uint8_t* data, std::size_t size) {
  static const Server server;
  FuzzedDataProvider input(data, size);
  Connection connection(server);
  Maker maker(input);
  std::vector<std::uint8_t> answer;
  bool connected = true;
  if (input.ConsumeBool()) {
    const std::vector<std::uint8_t> hello = maker.hello();
    connected = connection.exchange(hello.data(), hello.size(), 0, &answer);
  }
  for (int count = 0; count < 16 && connected && input.remaining_bytes() != 0; ++count) {
    const std::vector<std::uint8_t> packet = maker.make();
    const int stray = input.ConsumeIntegralInRange<int>(0, 39);
    connected = connection.exchange(packet.data(), packet.size(), stray < 8 ? stray : 0, &answer);
    REQUIRE(stray >= 8 || stray == 0 || !connected);  // who sends descriptors is dropped
  }
  ask_honestly(server);
}

}  // namespace
}  // namespace pickd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pickd::run(data, size);
  return 0;
}
